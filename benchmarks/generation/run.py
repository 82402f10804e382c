"""Tokens per second of a decoder: winml beside a plain loop over onnxruntime and beside onnxruntime-genai itself.

    python benchmarks/generation/run.py FOLDER... [--rounds 12] [--threads 1] [--arms default,genai] [--json FILE]

A folder that is not there and is named `SIZE-PRECISION`, as `tiny-int4` (sizes: random_llama.py), is built first with
`winml build`.

A round is a fresh process in which all arms have the folder open and continue the same prompt in turn, in an order that
is drawn for every turn; they are opened in one that is drawn for the round. Times are processor times with one thread,
which hardly feel other programs, else wall times. A round's ratio of two arms is the median over its turns, in which
both ran within a second: the clock of a shared processor moves between turns. Its tokens per second are those of its
fastest text. The arms:

    default   what `winml` runs where nothing is chosen
    ours      winml's own loop
    plain     a loop over onnxruntime with IO binding, written here
    genai     onnxruntime-genai, called directly on the folder

Ratios are above 1 where winml is faster than the faster of plain and genai. The last row of a folder compares a step
with 256 tokens of past with a run of all 256 tokens again, as a decoder without a past needs it.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record
from intervals import interval_of_median
from random_llama import SIZES, make_llama

NEW_TOKENS, PROMPT, LONG = 64, 32, 256
TEXTS, FEW, ROUND_S = 12, 3, 6.0
ARMS = ("default", "ours", "plain", "genai")
Step = Callable[[], Any]


def winml_text(folder: Path, threads: int, runtime: str | None) -> Callable[[Any, int], Step]:
    from winml.modelkit.core.measurement import SessionSection
    from winml.modelkit.core.target import Target
    from winml.modelkit.session.generation.opening import open_generator

    section = SessionSection(threads=threads)
    generator = open_generator(folder, target=Target("cpu", "cpu"), section=section, runtime=runtime)

    def start(prompt: Any, new_tokens: int) -> Step:
        generator.start(prompt, new_tokens=new_tokens)
        generator.next()
        return generator.next

    return start


def genai_text(folder: Path, threads: int) -> Callable[[Any, int], Step]:
    import numpy as np
    import onnxruntime_genai as og

    config = og.Config(str(folder))
    config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}))
    model = og.Model(config)

    def start(prompt: Any, new_tokens: int) -> Step:
        params = og.GeneratorParams(model)
        length = prompt.shape[1] + new_tokens
        params.set_search_options(do_sample=False, max_length=length, min_length=length, batch_size=1)
        generator = og.Generator(model, params)
        generator.append_tokens(prompt.astype(np.int32))
        generator.generate_next_token()

        def step() -> Any:
            generator.generate_next_token()
            return generator.get_next_tokens()

        return step

    return start


def plain_text(folder: Path, threads: int) -> Callable[[Any, int], Step]:
    """What a careful user writes: outputs stay in the runtime, and the cache is bound as the past of the next step."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    decoder = json.loads((folder / "genai_config.json").read_text(encoding="utf-8"))["model"]["decoder"]
    heads, size = decoder["num_key_value_heads"], decoder["head_size"]
    inputs = {one.name for one in session.get_inputs()}
    pairs = [(name, name.replace("past_key_values", "present")) for name in sorted(inputs) if "past" in name]
    shares = b"GroupQueryAttention" in (folder / "model.onnx").read_bytes()

    def start(prompt: Any, new_tokens: int) -> Step:
        binding = session.io_binding()
        binding.bind_output("logits")
        total = prompt.shape[1]
        for past, present in pairs:
            shape = (1, heads, total + new_tokens if shares else 0, size)
            value = onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, np.float32)
            binding.bind_ortvalue_input(past, value)
            if shares:
                binding.bind_ortvalue_output(present, value)
            else:
                binding.bind_output(present)

        def run(ids: Any, total: int) -> Any:
            binding.bind_cpu_input("input_ids", ids)
            binding.bind_cpu_input("attention_mask", np.ones((1, total), np.int64))
            if "position_ids" in inputs:
                binding.bind_cpu_input("position_ids", np.arange(total - ids.shape[1], total)[None])
            session.run_with_iobinding(binding)
            logits, *cache = binding.get_outputs()
            binding.bind_output("logits")
            for (past, present), value in zip(pairs, () if shares else cache, strict=False):
                binding.bind_ortvalue_input(past, value)
                binding.bind_output(present)
            return logits.numpy()[:, -1].argmax(-1)[:, None]

        ids = run(prompt, total)

        def step() -> Any:
            nonlocal ids, total
            total += 1
            ids = run(ids, total)
            return ids[0]

        return step

    return start


def open_arms(folder: Path, threads: int, names: list[str]) -> dict[str, Callable[[Any, int], Step]]:
    """The arms, opened in the order of their names: where weights lie in memory is worth percents of a step."""
    openers: dict[str, Callable[[], Callable[[Any, int], Step]]] = {
        "default": lambda: winml_text(folder, threads, None),
        "ours": lambda: winml_text(folder, threads, "onnxruntime"),
        "plain": lambda: plain_text(folder, threads),
        "genai": lambda: genai_text(folder, threads),
    }
    return {name: openers[name]() for name in names}


def time_text(step: Step, count: int, clock: Callable[[], float]) -> tuple[float, list[int]]:
    """Seconds of a token, over a text, and the tokens."""
    before = clock()
    tokens = [step() for _ in range(count)]
    return (clock() - before) / count, [int(token[0]) for token in tokens]


def one_round(folder: Path, threads: int, seed: int, names: list[str]) -> dict[str, Any]:
    """Seconds per token of every arm in every turn, and of a step with and without a past."""
    import numpy as np

    config = json.loads((folder / "genai_config.json").read_text(encoding="utf-8"))["model"]
    draw = random.Random(seed)
    arms = open_arms(folder, threads, draw.sample(names, len(names)))
    prompt = np.random.default_rng(seed).integers(3, config["vocab_size"], (1, PROMPT))
    found: dict[str, list[float]] = {name: [] for name in arms}
    texts: dict[str, list[int]] = {}
    clock = time.process_time if threads == 1 else time.perf_counter
    started = time.perf_counter()
    for turn in range(TEXTS):
        if turn >= FEW and time.perf_counter() - started > ROUND_S:
            break
        for name in draw.sample(names, len(names)):
            seconds, texts[name] = time_text(arms[name](prompt, NEW_TOKENS), NEW_TOKENS - 1, clock)
            found[name].append(seconds)
    result: dict[str, Any] = dict(found)
    result["equal"] = texts.get("ours") == texts.get("plain")
    if len(names) == len(ARMS) and config["context_length"] >= LONG + NEW_TOKENS:
        long = np.random.default_rng(seed).integers(3, config["vocab_size"], (1, LONG))
        result |= past_times(folder, threads, long, clock)
    return result


def past_times(folder: Path, threads: int, prompt: Any, clock: Callable[[], float]) -> dict[str, float]:
    """A token after 256: with their past, and by running all of them again."""
    from winml.modelkit.core.measurement import SessionSection
    from winml.modelkit.core.target import Target
    from winml.modelkit.session.generation.ort_loop import OrtGenerator

    steps, again = [], []
    with OrtGenerator(folder, target=Target("cpu", "cpu"), section=SessionSection(threads=threads)) as generator:
        for _ in range(3):
            generator.start(prompt, new_tokens=8)
            generator.next()
            steps.append(time_text(generator.next, 7, clock)[0])
            before = clock()
            generator.score(prompt)
            again.append(clock() - before)
    return {"with past": min(steps), "whole text again": min(again)}


def ensure_folder(folder: Path) -> None:
    """Build a folder that is not there from the size and the precision in its name."""
    if (folder / "genai_config.json").is_file():
        return
    size, _, precision = folder.name.rpartition("-")
    if size not in SIZES:
        sys.exit(f"{folder} has no genai_config.json, and {size or folder.name} is none of {', '.join(SIZES)}")
    with tempfile.TemporaryDirectory() as source:
        make_llama(size, Path(source))
        argv = [sys.executable, "-m", "winml.modelkit", "build", "-m", source, "-p", precision, "-o", str(folder)]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def rounds(folder: Path, threads: int, count: int, arms: str) -> Iterator[dict[str, Any]]:
    for number in range(count):
        argv = [sys.executable, __file__, str(folder), "--one", str(number), "--threads", str(threads), "--arms", arms]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        yield json.loads(done.stdout.splitlines()[-1])


def ratios(taken: list[dict[str, Any]], other: str, arm: str) -> list[float]:
    """How many times as fast `arm` is as `other`, in every round."""
    return [statistics.median(a / b for a, b in zip(one[other], one[arm], strict=True)) for one in taken]


def rows_of(name: str, taken: list[dict[str, Any]]) -> list[tuple[str, list[float]]]:
    """The values of every round, named for a table."""
    # The best is one arm for all rounds: the least of two noisy values in each would be better than either.
    others = [arm for arm in ("plain", "genai") if arm in taken[0]]
    best = min(others, key=lambda arm: statistics.median(min(one[arm]) for one in taken))
    of_both = f"the best of plain and genai ({best})" if len(others) > 1 else best
    rows = [
        (f"{name}: winml's {said} to {of_both}", ratios(taken, best, arm))
        for arm, said in (("default", "default"), ("ours", "own loop"))
        if arm in taken[0]
    ]
    if {"plain", "ours"} <= set(taken[0]):
        rows.append((f"{name}: winml's own loop to the plain loop", ratios(taken, "plain", "ours")))
    rows += [
        (f"{name}: {arm}, tokens per second", [1 / min(one[arm]) for one in taken]) for arm in ARMS if arm in taken[0]
    ]
    if "with past" in taken[0]:
        again = [one["whole text again"] / one["with past"] for one in taken]
        rows.append((f"{name}: the whole text again to a step with a past of {LONG}, times", again))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--arms", default=",".join(ARMS), help="with commas between")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(one_round(options.folders[0], options.threads, options.one, options.arms.split(","))))
        return
    rows = []
    for folder in options.folders:
        ensure_folder(folder)
    for folder in options.folders:
        taken = list(rounds(folder, options.threads, options.rounds, options.arms))
        if not all(one["equal"] for one in taken):
            print(f"{folder.name}: the plain loop and ours gave different tokens")
        for name, values in rows_of(folder.name, taken):
            middle, low, high = interval_of_median(values)
            print(f"{name}: {middle:.4g} ({low:.4g} … {high:.4g})")
            rows.append((name, values))
    if options.json:
        words = " ".join(folder.name for folder in options.folders)
        command = f"python benchmarks/generation/run.py {words} --rounds {options.rounds} --threads {options.threads}"
        command += "" if options.arms == ",".join(ARMS) else f" --arms {options.arms}"
        record.write_results(options.json, command, rows, conditions={"threads": options.threads})


if __name__ == "__main__":
    main()
