"""Builds every model of the catalog for cpu and qnn/npu, one at a time, and keeps a line per build.

Goes on where it stopped: a model and target that are in the results are not built again. Folders of models and their
caches go as soon as both builds are done. `table.py` makes the table of docs/export.md from the results.

    python benchmarks/catalog/run.py [--only NAME] [--results FILE] [--again]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from models import MODELS

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
TARGETS: dict[str, tuple[str, ...]] = {
    "cpu": ("--no-quant",),
    "qnn/npu": ("--calibration", "random", "--samples", "2"),
}
TIMEOUT_S = 1800


def done(results: Path) -> set[tuple[str, str]]:
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return {(row["model"], row["target"]) for row in map(json.loads, lines)}


def winml(folder: Path, *words: str) -> dict[str, Any]:
    """The JSON of a command, with the processor time of everything it started."""
    before = os.times()
    run = subprocess.run(
        [sys.executable, "-m", "winml.modelkit", *words, "--json"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, "WINML_CACHE": str(folder / "cache")},
        check=False,
    )
    after = os.times()
    if not run.stdout:
        raise SystemExit(run.stderr)
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return {**json.loads(run.stdout), "cpu_s": cpu_s}


def placed(analysis: dict[str, Any]) -> dict[str, Any]:
    """Nodes that the target takes and those it leaves, of the model before quantization."""
    target = analysis["targets"][0]
    left = Counter(node["op"] for node in target["left"])
    return {"status": target["status"], **(target["placement"] or {}), "left": dict(left)}


def row(name: str, target: str, model: Path, folder: Path) -> dict[str, Any]:
    """One line: how the build went, how the export compares, who takes its nodes."""
    started = time.monotonic()
    output = folder / target.replace("/", "-")
    built = winml(folder, "build", "-m", str(model), "--target", target, *TARGETS[target], "-o", str(output))
    line = {"model": name, "target": target, "ok": built["ok"], "cpu_s": round(built["cpu_s"], 1)}
    line["wall_s"] = round(time.monotonic() - started, 1)
    if not built["ok"]:
        return line | {"error": built["error"]["message"]}
    metadata = json.loads((output / "export_metadata.json").read_bytes())
    analysis = output / "analyze_result.json"
    return line | {
        "class": metadata["architecture"],
        "task": metadata["task"],
        "parameters": metadata["parameters"],
        "precision": built["precision"],
        "stages": {stage["stage"]: [stage["cache"], round(stage["seconds"], 1)] for stage in built["stages"]},
        "difference": metadata["parity"]["difference"],
        "bytes": built["artifact"]["bytes"],
        "analysis": built["analysis"],
        "placement": placed(json.loads(analysis.read_bytes())) if analysis.exists() else None,
        "versions": metadata["libraries"],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="build also what is in the results")
    asked = parser.parse_args()
    known = set() if asked.again else done(asked.results)
    for name in [asked.only] if asked.only else MODELS:
        wanted = [target for target in TARGETS if (name, target) not in known]
        if not wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="winml-catalog-") as temporary:
            folder = Path(temporary)
            subprocess.run(
                [sys.executable, HERE / "models.py", name, folder / "model"], check=True, capture_output=True
            )
            for target in wanted:
                line = row(name, target, folder / "model", folder)
                with asked.results.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
