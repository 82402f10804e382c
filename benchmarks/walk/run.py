"""Take every tiny model through inspect, a build for the CPU, a comparison with PyTorch and a build for the NPU.

Every step is the program as users run it, in a process of its own with a limit of CPU time; models have nothing in
common but the folder of the cache. A journal has a line per step, so that a run that ended anywhere goes on where it
was: the same command again does what is missing. `summary.py` makes `benchmarks/results/walk.json` of the journal.

    python benchmarks/walk/tiny_models.py -o FOLDER
    python benchmarks/walk/run.py FOLDER -o WORK [--named] [--only NAME,...] [--steps STEP,...] [--jobs N]
                                  [--again refused|failed|NAME,...] [--limit STEP=SECONDS] [--warm]
                                  [--earlier FILE]

What `benchmarks/results/walk.json` has of the same versions and the same tiny models counts as done, so that a walk
goes on on another machine. With `--warm` a program stays for the steps of many models (`warm.py`): half the time, and
not quite what a user runs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import psutil

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import overrides  # noqa: E402
import tiny_models  # noqa: E402
from outcomes import Judgement, Ran, judge, judge_check  # noqa: E402
from warm import WarmProgram  # noqa: E402

from winml.modelkit.store.journal import Journal, read  # noqa: E402
from winml.modelkit.worker.process_tree import ProcessTree  # noqa: E402

LIMITS_S = {"inspect": 60.0, "cpu": 600.0, "check": 180.0, "npu": 900.0}
"""The steps in their order, and the CPU time that each may take: a busy machine ends none of them."""
WALL_TIMES = 8.0
"""How many times as long a step may last by the clock, for one that waits and does nothing."""
LOOK_S = 2.0
"""How often CPU time is looked at."""
NPU = (
    "--target", "qnn/npu", "--precision", "w8a16", "--calibration", "random", "--samples", "8", "--fallback-precision",
)  # fmt: skip
"""The precision that was reached is in the facts of the step."""
NEEDS = {"check": "cpu", "npu": "cpu"}
"""A step is skipped when the one it needs made nothing."""
MADE = ("right", "not proven")
PACKAGES = ("winml-modelkit", "transformers", "torch", "onnx", "onnxscript", "onnxruntime", "onnxruntime-qnn")
SAME = ("transformers", "torch", "onnx", "onnxruntime", "onnxruntime-qnn")
"""Packages whose versions must be those of an earlier walk for its outcomes to count."""
GENERATING = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
JOURNAL = "journal.jsonl"
RESULTS = HERE.parent / "results" / "walk.json"

Step = dict[str, Any]
"""A record of the journal."""


class Stopped(Exception):
    """The run ends while a program is running."""


def command(step: str, model: Path, work: Path) -> list[str]:
    """The words of a step."""
    if step == "check":
        return [sys.executable, str(HERE / "check.py"), str(model), str(work / "cpu")]
    winml = [sys.executable, "-m", "winml.modelkit"]
    if step == "inspect":
        return [*winml, "inspect", "-m", str(model), "--json"]
    target = ("--target", "cpu") if step == "cpu" else NPU
    return [*winml, "build", "-m", str(model), *target, "-o", str(work / step), "--json"]


ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def child_environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "WINML_CACHE": str(cache), **ONE_THREAD, "HF_HUB_OFFLINE": "1"}


def cpu_time(pid: int) -> float:
    """Seconds of CPU time that a process, those it started and those of them that have ended took so far."""
    total = 0.0
    try:
        processes = [psutil.Process(pid)]
        processes += processes[0].children(recursive=True)
    except psutil.Error:
        return total
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.Error:  # ended meanwhile
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


class Budget:
    """The CPU time of a step, and the longer time by the clock."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._started = self._looked = time.monotonic()
        self._before: float | None = None

    def is_spent(self, pid: int) -> bool:
        """Whether the step that runs in a process and below it must end."""
        now = time.monotonic()
        if self._before is None:
            self._before = cpu_time(pid)
        if now - self._started >= self.limit_s * WALL_TIMES:
            return True
        if now - self._looked < LOOK_S:
            return False
        self._looked = now
        return cpu_time(pid) - self._before >= self.limit_s


class WarmPrograms(threading.local):
    """The programs of a thread, which stay for its next model."""

    def __init__(self, cache: Path) -> None:
        self._programs = {kind: WarmProgram(kind, child_environment(cache)) for kind in ("winml", "check")}

    def run(self, argv: list[str], *, work: Path, limit_s: float, stop: threading.Event) -> Ran:
        """Run the words of a step with the program that stays."""
        started = time.monotonic()
        out, err = work / "stdout", work / "stderr"
        # Of `python check.py ...` or `python -m winml.modelkit ...`.
        kind, words = ("winml", argv[3:]) if argv[1] == "-m" else ("check", argv[2:])
        program = self._programs[kind]
        code = program.run(words, stdout=out, stderr=err, cwd=work, budget=Budget(limit_s), stop=stop)
        if stop.is_set():
            self.end()
            raise Stopped
        seconds = time.monotonic() - started
        said = [file.read_text("utf-8", "replace") if file.exists() else "" for file in (out, err)]
        return Ran(exit_code=code, stdout=said[0], stderr=said[1], seconds=seconds)

    def end(self) -> None:
        for program in self._programs.values():
            program.end()


def run_program(argv: list[str], *, work: Path, limit_s: float, cache: Path, stop: threading.Event) -> Ran:
    """Run a program to its end, or end it and all that it started when its time is over."""
    started = time.monotonic()
    environment = child_environment(cache)
    out, err = work / "stdout", work / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        tree = ProcessTree(argv, cwd=work, stdout=stdout, stderr=stderr, env=environment)
        code: int | None = None
        budget = Budget(limit_s)
        try:
            while code is None and not budget.is_spent(tree.pid) and not stop.is_set():
                try:
                    code = tree.process.wait(timeout=0.5)
                except TimeoutExpired:
                    continue
        finally:
            tree.end()
    if stop.is_set():
        raise Stopped
    return Ran(
        exit_code=code,
        stdout=out.read_text("utf-8", "replace"),
        stderr=err.read_text("utf-8", "replace"),
        seconds=time.monotonic() - started,
    )


def walk_model(
    name: str, folder: Path, steps: Sequence[str], known: Mapping[str, str], asked: argparse.Namespace,
    stop: threading.Event,
) -> list[Step]:  # fmt: skip
    """Take a model through the steps; `known` has outcomes of steps that were run before."""
    outcomes = dict(known)
    done = []
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=asked.output, ignore_cleanup_errors=True) as temporary:
        work = Path(temporary)
        wanted = [*steps]
        if "check" in wanted and "cpu" not in wanted and outcomes.get("cpu") in MADE:
            # The build is gone; it comes from the cache.
            wanted.insert(0, "cpu")
        for step in wanted:
            needed = NEEDS.get(step)
            if needed is not None and outcomes.get(needed) not in MADE:
                judged = Judgement(outcome="skipped", reason=f"the step {needed}: {outcomes.get(needed, 'not run')}")
                seconds = 0.0
            else:
                limit = asked.limits[step]
                argv = command(step, folder, work)
                for old in ("stdout", "stderr"):
                    (work / old).unlink(missing_ok=True)
                if asked.programs is not None:
                    ran = asked.programs.run(argv, work=work, limit_s=limit, stop=stop)
                else:
                    ran = run_program(argv, work=work, limit_s=limit, cache=asked.output / "cache", stop=stop)
                judged, seconds = judge_check(ran) if step == "check" else judge(step, ran), ran.seconds
            outcomes[step] = judged.outcome
            done.append({"kind": "step", "model": name, "step": step, "seconds": round(seconds, 1), **asdict(judged)})
    return done


def latest(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The last record of every model and step."""
    return {(row["model"], row["step"]): row for row in records if row.get("kind") == "step"}


def earlier_steps(
    file: Path, index: Mapping[str, tiny_models.Row], found: Mapping[str, str]
) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Outcomes of a walk before, for the models that are the same; none where it had other versions."""
    if not file.is_file():
        return {}
    walked = json.loads(file.read_bytes())
    if any(walked["versions"].get(name) != found.get(name) for name in SAME):
        return {}
    return {
        (row["name"], step): outcome
        for row in walked["architectures"]
        if is_same_model(row, index.get(row["name"]))
        for step, outcome in row["steps"].items()
    }


def is_same_model(row: Mapping[str, Any], made: tiny_models.Row | None) -> bool:
    """Whether an architecture of an earlier walk had the tiny model that there is now, by its class and its size."""
    return made is not None and (row["class"], row["parameters"]) == (made.model or None, made.parameters or None)


def choose(
    names: Sequence[str], steps: Sequence[str], done: Mapping[tuple[str, str], Mapping[str, Any]], again: Sequence[str]
) -> list[tuple[str, list[str]]]:
    """Models with the steps that are missing, or are to be run again."""
    chosen = []
    for name in names:
        repeated = name in again or any(_is_again(row, again) for (model, _), row in done.items() if model == name)
        missing = [step for step in steps if repeated or (name, step) not in done]
        if missing:
            chosen.append((name, missing))
    return chosen


def _is_again(row: Mapping[str, Any], again: Sequence[str]) -> bool:
    return row["outcome"] in again or ("failed" in again and row["outcome"] not in ("right", "skipped"))


def order_by_cost(names: Iterable[str], index: Mapping[str, tiny_models.Row]) -> list[str]:
    """Architectures that generate text last: with a cache and without, each takes four times as long as another."""
    return sorted(names, key=lambda name: index[name].model.endswith(GENERATING))


def versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def walk(
    todo: Sequence[tuple[str, list[str]]],
    done: Mapping[tuple[str, str], Mapping[str, Any]],
    asked: argparse.Namespace,
    journal: Journal,
    say: Callable[[str], None],
) -> None:
    """Run what is to be done, several models at a time; every model is in the journal as soon as it is done."""
    stop = threading.Event()
    started = time.monotonic()
    queue = list(reversed(todo))
    running: dict[Future[list[Step]], str] = {}
    with ThreadPoolExecutor(asked.jobs) as pool:
        try:
            count = 0
            while queue or running:
                while queue and len(running) < asked.jobs:
                    name, steps = queue.pop()
                    known = {step: row["outcome"] for (model, step), row in done.items() if model == name}
                    task = pool.submit(walk_model, name, asked.models / name, steps, known, asked, stop)
                    running[task] = name
                for task in wait(running, return_when=FIRST_COMPLETED).done:
                    name = running.pop(task)
                    rows = task.result()
                    for row in rows:
                        journal.append(row)
                    count += 1
                    say(_progress(name, rows, count, len(todo), time.monotonic() - started))
        except BaseException:
            stop.set()
            raise


def _progress(name: str, rows: Sequence[Step], count: int, total: int, elapsed_s: float) -> str:
    states = ", ".join(f"{row['step']} {row['outcome']}" for row in rows)
    left_min = elapsed_s / count * (total - count) / 60
    return f"[{count}/{total}] {name}: {states} ({sum(row['seconds'] for row in rows):.0f} s); {left_min:.0f} min left"


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, help="the folder that tiny_models.py made")
    parser.add_argument("-o", "--output", type=Path, required=True, help="journal, cache and files of the run")
    parser.add_argument("--named", action="store_true", help="only the families that people bring most")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], metavar="NAME,...")
    parser.add_argument("--steps", type=lambda text: text.split(","), default=[*LIMITS_S], metavar="STEP,...")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--again", type=lambda text: text.split(","), default=[], metavar="refused|failed|NAME,...")
    parser.add_argument("--limit", action="append", default=[], metavar="STEP=SECONDS", help="of CPU time")
    parser.add_argument("--earlier", type=Path, default=RESULTS, metavar="FILE", help="an earlier walk, which counts")
    parser.add_argument("--warm", action="store_true", help="programs stay for the steps of many models")
    asked = parser.parse_args(words)
    if unknown := set(asked.steps) - set(LIMITS_S):
        parser.error(f"no step {', '.join(sorted(unknown))}; there are {', '.join(LIMITS_S)}")
    asked.limits = LIMITS_S | {step: float(limit) for step, _, limit in (text.partition("=") for text in asked.limit)}
    return asked


def main() -> int:
    asked = parse()
    index = tiny_models.read_index(asked.models / tiny_models.INDEX)
    made = order_by_cost((name for name, row in index.items() if row.state.startswith("ok")), index)
    names = asked.only or ([name for name in overrides.NAMED if name in made] if asked.named else made)
    if missing := [name for name in names if name not in made]:
        print(f"no tiny model of {', '.join(missing)} in {asked.models}", file=sys.stderr)
        return 2
    asked.output.mkdir(parents=True, exist_ok=True)
    asked.models, asked.output = asked.models.resolve(), asked.output.resolve()
    asked.programs = WarmPrograms(asked.output / "cache") if asked.warm else None
    for left in asked.output.glob("*-*/stderr"):
        # Of a run that was killed.
        shutil.rmtree(left.parent, ignore_errors=True)
    with Journal(asked.output / JOURNAL) as journal:
        done = earlier_steps(asked.earlier, index, versions()) | latest(journal.replay.records)
        todo = choose(names, asked.steps, done, asked.again)
        journal.append({"kind": "start", "versions": versions(), "models": len(todo), "warm": asked.warm})
        try:
            walk(todo, done, asked, journal, lambda line: print(line, flush=True))
        except KeyboardInterrupt:
            print("interrupted; the same command goes on where it was", file=sys.stderr)
            return 130
    print(f"done; {len(latest(read(asked.output / JOURNAL).records))} steps are in {asked.output / JOURNAL}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
