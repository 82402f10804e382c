"""What a precision costs and gains on a trained decoder: perplexity, sums it still solves, tokens per second, size.

    python benchmarks/trained_decoder/train.py FOLDER
    python benchmarks/trained_decoder/precisions.py FOLDER -o WORK

Steps are the program as users run it. Tokens per second are judged against fp32 by `winml compare`, token by token in
one process. Writes `benchmarks/results/trained_decoder.json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import record  # noqa: E402 - it lies beside the benchmarks

RESULTS = HERE.parent / "results" / "trained_decoder.json"
CPU = ("--target", "cpu")
BUILDS: dict[str, tuple[str, dict[str, Any]]] = {
    "fp32": ("fp32", {}),
    "fp16": ("fp16", {}),
    "dynamic": ("dynamic", {}),
    "int4": ("int4", {}),
    "int4, asymmetric": ("int4", {"symmetric_weights": False}),
    "int4, blocks of 16": ("int4", {"block_size": 16}),
    "int4, blocks of 128": ("int4", {"block_size": 128}),
    "int4, hqq": ("int4", {"block_method": "hqq", "symmetric_weights": False}),
    "int4, k_quant": ("int4", {"block_method": "k_quant", "symmetric_weights": False}),
    "int4, multiplied in float32": ("int4", {"block_compute": "float32"}),
}
"""The precision of every build, and what differs from its usual config."""


def run(work: Path, *words: str) -> dict[str, Any]:
    """The JSON of a command, which must end well."""
    command = [sys.executable, "-m", "winml.modelkit", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=work, check=False, timeout=3600)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stdout[-400:]}{done.stderr[-400:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def build(name: str, source: Path, work: Path) -> tuple[Path, int]:
    """The folder of a build and the size of its model."""
    precision, changes = BUILDS[name]
    folder = work / name.replace(", ", "-").replace(" ", "-")
    config = run(work, "config", "-m", str(source), *CPU, "-p", precision)["config"]
    if changes:
        config["quantize"] |= changes
    file = work / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    built = run(work, "build", "-c", str(file), "-o", str(folder), "--overwrite")
    return folder, built["artifact"]["bytes"]


def estimates(judged: dict[str, Any]) -> dict[str, Any]:
    """Metrics of an evaluation by name, with their intervals."""
    found: dict[str, Any] = {}
    for where in (judged.get("metrics"), judged.get("comparison")):
        for name, entry in (where or {}).items():
            found[name] = {"value": entry["value"], **(entry.get("interval") or {})}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    source, work = asked.source.absolute(), asked.output.absolute()
    work.mkdir(parents=True, exist_ok=True)
    base: Path | None = None
    rows: dict[str, Any] = {}
    for name in BUILDS:
        folder, size = build(name, source, work)
        against = () if base is None else ("--reference", str(base))
        texts = ("--data", str(source / "heldout.jsonl"), "--task", "perplexity")
        sums = ("--data", str(source / "sums.jsonl"), "--task", "text-generation", "--new-tokens", "8")
        row: dict[str, Any] = {"bytes": size}
        row["perplexity"] = run(work, "eval", "-m", str(folder), *CPU, *texts, *against)
        row["sums"] = run(work, "eval", "-m", str(folder), *CPU, *sums, "--task-option", "stop=\\n")
        if base is None:
            base = folder
        else:
            row["speed"] = run(
                work, "compare", str(base), str(folder), *CPU, "--metric", "tokens-per-second", "--threads", "1"
            )
        (work / "rows.json").write_text(json.dumps({**rows, name: row}, indent=1), encoding="utf-8")
        rows[name] = row
        print(name, size, flush=True)
    found = {
        "command": "python benchmarks/trained_decoder/precisions.py FOLDER -o WORK",
        "machine": record.machine(),
        "rows": {name: summarize(row) for name, row in rows.items()},
    }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {RESULTS}")
    return 0


def summarize(row: dict[str, Any]) -> dict[str, Any]:
    """What the table shows of a build."""
    kept = {"bytes": row["bytes"], "perplexity": estimates(row["perplexity"]), "sums": estimates(row["sums"])}
    if "speed" in row:
        kept["verdict"] = row["speed"]["verdict"]
    return kept


if __name__ == "__main__":
    sys.exit(main())
