"""Families that generate text, one after another: tokens against PyTorch's `generate`, what precisions cost, the NPU.

Every family is a tiny model with random weights, as `benchmarks/walk/tiny_models.py` makes them. Steps are the program
as users run it; a line of the journal `WORK/families.jsonl` is written after each, so that the same command goes on
where it was.

    python benchmarks/walk/tiny_models.py -o FOLDER llama gpt2 ...
    python benchmarks/generation/families.py FOLDER -o WORK [--only NAME,...] [--steps cpu,npu]

With `--real-layers` models have the layers of published ones (`real_layers.py`), and only their tokens at fp32 on the
CPU are compared: `benchmarks/results/generation_real_layers.json`.

    python benchmarks/generation/families.py --real-layers -o WORK [--only NAME,...]

The steps may run apart, in folders of their own: `--journal OTHER/families.jsonl` reads what was done there. With
`--again fp16` (precisions, with commas between) these alone are built and compared again, and laid over the results.
Writes `benchmarks/results/generation_families.json` when both steps of every family are done.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "generation_families.json"
REAL_RESULTS = HERE.parent / "results" / "generation_real_layers.json"
DECODERS = ("llama", "mistral", "qwen2", "qwen3", "phi3", "gemma", "gpt2", "smollm3", "opt", "granite", "gpt_neox")
PAIRS = ("bart", "t5", "marian", "whisper", "vision-encoder-decoder")
PRECISIONS = ("fp16", "dynamic", "int4")
TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "A model that generates text takes one token after another.",
    "Numbers without a spread are numbers that nobody can trust.",
    "It rained in the morning, and the streets were empty until noon.",
    "Every measurement names the machine that it was taken on.",
    "She opened the window and listened to the sea.",
    "Two trains left the station at the same time.",
    "What is not known is not the same as nothing.",
)
CPU, NPU = ("--target", "cpu"), ("--target", "qnn/npu", "-p", "fp16")


def run(work: Path, *words: str) -> dict[str, Any]:
    """The JSON of a command; the error of one that failed."""
    command = [sys.executable, "-m", "winml.modelkit", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=work, check=False, timeout=1800)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"ok": False, "error": {"message": done.stderr.strip()[-300:]}}
    return found


def plain(text: str) -> str:
    """A reason without folders of the machine that it was met on."""
    return re.sub(r"(?<![\w.])/(?:[^\s`\"'/]+/)+", "", text)


def judge_decoder(name: str, source: Path, work: Path, precisions: Sequence[str]) -> dict[str, Any]:
    """One graph with a cache: its tokens, then what every precision costs."""
    base = f"{name}-fp32"
    built = build(work, source, "fp32", base)
    if not built["ok"]:
        return {"refused": plain(built["error"]["message"])}
    exported = json.loads((work / base / "export_metadata.json").read_text(encoding="utf-8"))
    row: dict[str, Any] = who_exported(exported) | {"tokens": exported["parity"].get("tokens")}
    row["bytes"] = {"fp32": built["artifact"]["bytes"]}
    row["precisions"] = {}
    for precision in precisions:
        folder = f"{name}-{precision}"
        other = build(work, source, precision, folder)
        if not other["ok"]:
            row["precisions"][precision] = {"refused": plain(other["error"]["message"])}
            continue
        row["bytes"][precision] = other["artifact"]["bytes"]
        row["precisions"][precision] = compare(folder, base, work)
    return row


def build(work: Path, source: Path, precision: str, folder: str) -> dict[str, Any]:
    return run(work, "build", "-m", str(source), *CPU, "-p", precision, "-o", folder, "--overwrite", "--no-analyze")


def who_exported(exported: dict[str, Any]) -> dict[str, Any]:
    """The exporter of a decoder, and why it was not onnxruntime-genai's builder."""
    from winml.modelkit.building.export import genai

    row: dict[str, Any] = {"exporter": exported["exporter"]}
    if exported["exporter"] == genai.EXPORTER:
        return row
    if exported["architecture"] not in genai.ARCHITECTURES:
        return row | {"because": f"the builder has no {exported['architecture']}"}
    return row | {"because": plain(" ".join(exported["warnings"])) or "not said"}


def compare(folder: str, base: str, work: Path) -> dict[str, Any]:
    """A precision against float32 on the same texts: the likelihood of the texts, and what both generate."""
    found: dict[str, Any] = {}
    for task, metrics in (
        ("perplexity", ("perplexity_ratio", "kl_divergence", "same_next_token")),
        ("text-generation", ("equal_tokens",)),
    ):
        data = "texts.jsonl" if task == "perplexity" else "prompts.jsonl"
        judged = run(
            work, "eval", "-m", folder, "--reference", base, "--data", data, "--task", task, *CPU, "--new-tokens", "32"
        )
        if not judged["ok"]:
            found[task] = {"refused": plain(judged["error"]["message"])}
            continue
        found |= {name: value for name, value in find_metrics(judged).items() if name in metrics}
    return found


def find_metrics(judged: dict[str, Any]) -> dict[str, Any]:
    """Values with their intervals, wherever a result has them."""
    found: dict[str, Any] = {}
    for where in (judged.get("metrics"), judged.get("comparison")):
        for name, entry in (where or {}).items():
            found[name] = {"value": entry["value"], **(entry.get("interval") or {})}
    return found


def judge_pair(name: str, source: Path, work: Path, precisions: Sequence[str]) -> dict[str, Any]:
    """Parts that generate together: their tokens against PyTorch's, then what every precision costs."""
    base = f"{name}-fp32"
    built = build(work, source, "fp32", base)
    if not built["ok"]:
        return {"refused": plain(built["error"]["message"])}
    found = run_script("pair_tokens.py", str(source), str(work / base))
    if "refused" in found:
        return found
    row: dict[str, Any] = {"exporter": "transformers", "tokens": found, "precisions": {}}
    for precision in precisions:
        folder = f"{name}-{precision}"
        other = build(work, source, precision, folder)
        if other["ok"]:
            row["precisions"][precision] = run_script("pair_agreement.py", str(work / base), str(work / folder))
        else:
            row["precisions"][precision] = {"refused": plain(other["error"]["message"])}
    return row


def run_script(*words: str) -> dict[str, Any]:
    """The JSON in the last line that a script of this folder prints; the end of its error where it failed."""
    done = subprocess.run(
        [sys.executable, str(HERE / words[0]), *words[1:]], capture_output=True, text=True, check=False, timeout=1800
    )
    if done.returncode:
        return {"refused": plain(done.stderr.strip()[-300:])}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def judge_real_layers(names: list[str], work: Path) -> None:
    """Tokens of models with the layers of published ones, one after another; what is done is in the journal."""
    import real_layers

    journal = work / "real_layers.jsonl"
    done = read_journals([journal])
    known = real_layers.DECODERS | real_layers.PAIRS
    for name in names or known:
        if name in done:
            continue
        source, folder = work / f"{name}-source", work / f"{name}-real"
        weights = real_layers.make_model(name, source)
        built = run(
            work, "build", "-m", str(source), *CPU, "-p", "fp32", "-o", str(folder), "--no-analyze", "--overwrite"
        )
        row: dict[str, Any] = {"layers of": known[name][0], "weights": weights}
        if not built["ok"]:
            row["refused"] = plain(built["error"]["message"])
        elif name in real_layers.DECODERS:
            exported = json.loads((folder / "export_metadata.json").read_text(encoding="utf-8"))
            row |= who_exported(exported) | {"difference": exported["parity"]["difference"]}
            row["tokens"] = run_script("decoder_tokens.py", str(source), str(folder))
        else:
            tokens = {}
            for batch in (1, 2):
                found = run_script("pair_tokens.py", str(source), str(folder), "--batch", str(batch))
                if "equal" in found:
                    found = {"equal": found["equal"], "of": found["prompts"] * found["tokens"], "ties": found["ties"]}
                tokens[f"batch {batch}" + (", padded" if batch == 2 else "")] = found
            row |= {"exporter": "transformers", "tokens": tokens}
        done[name] = row
        with journal.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"family": name, **row}) + "\n")
        print(json.dumps({"family": name, **row}), flush=True)
        for path in (source, folder):
            shutil.rmtree(path, ignore_errors=True)
    rows = {name: done[name] for name in known if name in done}
    REAL_RESULTS.write_text(json.dumps({"families": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {REAL_RESULTS}: {len(rows)} of {len(known)} families")


def judge_npu(name: str, source: Path, work: Path) -> dict[str, Any]:
    """Where the operators of every part are on the simulated NPU."""
    folder = f"{name}-npu"
    built = run(work, "build", "-m", str(source), *NPU, "-o", folder, "--overwrite")
    if not built["ok"]:
        return {"refused": plain(built["error"]["message"])}
    placed: dict[str, Any] = {}
    for part in built.get("parts", [built]):
        proof = part["proof"]
        placement = proof["placement"] or {}
        placed[part.get("part", "model")] = {
            "cosine": None if proof["agreement"] is None else proof["agreement"]["cosine"],
            "nodes": placement.get("nodes"),
            "on_cpu": placement.get("cpu_ops"),
        }
    return placed


def write_texts(work: Path) -> None:
    """What builds are compared on: texts, and their beginnings as prompts."""
    (work / "texts.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS), encoding="utf-8")
    prompts = "".join(json.dumps({"prompt": text[:24], "answer": text[24:]}) + "\n" for text in TEXTS)
    (work / "prompts.jsonl").write_text(prompts, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="?")
    parser.add_argument("--real-layers", action="store_true", help="layers of published models, tokens at fp32 only")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--only", help="names, with commas between")
    parser.add_argument("--steps", default="cpu,npu", help="with commas between: cpu, npu")
    parser.add_argument("--again", help="precisions that are measured again, with commas between")
    parser.add_argument("--journal", type=Path, action="append", default=[], help="journal of another run, read first")
    asked = parser.parse_args()
    steps = ["cpu"] if asked.again else asked.steps.split(",")
    precisions = asked.again.split(",") if asked.again else PRECISIONS
    if unknown := set(steps) - {"cpu", "npu"}:
        parser.error(f"unknown steps: {', '.join(sorted(unknown))}")
    work: Path = asked.output
    work.mkdir(parents=True, exist_ok=True)
    if asked.real_layers:
        judge_real_layers(asked.only.split(",") if asked.only else [], work)
        return 0
    if asked.models is None:
        parser.error("the folder of the models is missing")
    write_texts(work)
    journal = work / "families.jsonl"
    before = json.loads(RESULTS.read_text(encoding="utf-8"))["families"] if asked.again else {}
    done = read_journals([*asked.journal, journal])
    names = asked.only.split(",") if asked.only else [*DECODERS, *PAIRS]
    found = {name: (asked.models / name).absolute() for name in names}
    for name, source in ((name, source) for name, source in found.items() if source.is_dir()):
        for step in steps:
            if is_done(done.get(name, {}), step):
                continue
            row = judge(step, name, source, work, precisions)
            row = lay_over(before.get(name, {}), row) if asked.again else row
            done[name] = done.get(name, {}) | row
            with journal.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"family": name, **row}) + "\n")
            print(json.dumps({"family": name, **row})[:400], flush=True)
            for folder in work.glob(f"{name}-*"):
                shutil.rmtree(folder, ignore_errors=True)
    done = before | done
    if all(is_done(done.get(name, {}), step) for name in DECODERS + PAIRS for step in ("cpu", "npu")):
        rows = {name: done[name] for name in DECODERS + PAIRS}
        RESULTS.write_text(json.dumps({"families": rows}, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {RESULTS}")
    return 0


def read_journals(journals: list[Path]) -> dict[str, dict[str, Any]]:
    """What is known of every family: the lines of its steps, laid over one another."""
    done: dict[str, dict[str, Any]] = {}
    for journal in journals:
        for line in journal.read_text(encoding="utf-8").splitlines() if journal.is_file() else []:
            entry = json.loads(line)
            row = done.setdefault(entry.pop("family"), {})
            row |= {key: value for key, value in entry.items() if value is not None}
    return done


def lay_over(before: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """A row with what it had of other precisions and of the NPU."""
    nested: dict[str, Any] = {key: {**before.get(key, {}), **row[key]} for key in ("bytes", "precisions") if key in row}
    ordered = {name: nested["precisions"][name] for name in PRECISIONS if name in nested.get("precisions", {})}
    return {**before, **row, **nested, **({"precisions": ordered} if ordered else {})}


def is_done(row: dict[str, Any], step: str) -> bool:
    return "npu" in row if step == "npu" else bool({"exporter", "refused"} & set(row))


def judge(step: str, name: str, source: Path, work: Path, precisions: Sequence[str]) -> dict[str, Any]:
    if step == "npu":
        row: dict[str, Any] = {"npu": judge_npu(name, source, work)}
        if name in PAIRS and "refused" not in row["npu"]:
            row["npu_tokens"] = run_script("pair_tokens.py", str(source), str(work / f"{name}-npu"), "qnn/npu")
        return row
    return (judge_pair if name in PAIRS else judge_decoder)(name, source, work, precisions)


if __name__ == "__main__":
    sys.exit(main())
