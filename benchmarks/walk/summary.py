"""Make `benchmarks/results/walk.json` of the journal of a walk: what came of every architecture, and the shares.

    python benchmarks/walk/summary.py FOLDER WORK [-o FILE]

FOLDER is where `tiny_models.py` made the models, WORK where `run.py` has its journal. What FILE has already of the
same versions and models, and the journal has not, stays as it is. `scripts/make_catalog.py` and
`scripts/make_measurements.py` read the result.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import overrides  # noqa: E402
import record  # noqa: E402
import tiny_models  # noqa: E402
from run import JOURNAL, LIMITS_S, RESULTS, SAME, is_same_model, latest  # noqa: E402

from winml.modelkit.store.journal import read  # noqa: E402

SCHEMA = "winml/walk/1"
NOT_MADE = {"no model": "no model", "failed": "not made"}
"""Architectures without a tiny model, by the state in the index."""
LONGEST = 300
"""Characters of a reason."""


def _without_folders(reason: str) -> str:
    """A reason with files by their names alone: where they lay on the machine of the walk says nothing."""
    return re.sub(r"(?:[A-Za-z]:)?[/\\](?:[^/\\`'\"\s]+[/\\])+([^/\\`'\"\s]+)", r"\1", reason)[:LONGEST]


def describe(row: tiny_models.Row, steps: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An architecture: what was made of it, and what came of each step."""
    shown = {
        "name": row.model_type,
        "class": row.model or None,
        "parameters": row.parameters or None,
        "named": row.model_type in overrides.NAMED,
        "task": (steps.get("inspect", {}).get("facts") or {}).get("task"),
    }
    if row.state in NOT_MADE:
        return shown | {"made": NOT_MADE[row.state], "reason": _without_folders(row.reason), "steps": {}}
    return shown | {
        "made": "made",
        "reason": "",
        "steps": {step: _describe_step(steps[step]) for step in LIMITS_S if step in steps},
    }


def _describe_step(row: Mapping[str, Any]) -> dict[str, Any]:
    facts = row.get("facts") or {}
    kept = {
        name: facts[name]
        for name in ("exit_code", "stage", "cosine", "error", "parts", "left", "nodes")
        if facts.get(name)
    }
    if isinstance(kept.get("cosine"), float):
        kept["cosine"] = float(f"{kept['cosine']:.6g}")
    return {"outcome": row["outcome"], "reason": _without_folders(row["reason"]), "seconds": row["seconds"], **kept}


def count(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many of the architectures came how far."""
    made = [row["steps"] for row in rows if row["made"] == "made"]

    def outcomes(step: str) -> Counter[str]:
        return Counter(steps[step]["outcome"] for steps in made if step in steps)

    cpu, npu, check = outcomes("cpu"), outcomes("npu"), outcomes("check")
    crashes = sum(outcomes(step)["crashed"] for step in LIMITS_S)
    placed = [steps for steps in made if steps.get("npu", {}).get("outcome") == "right"]
    return {
        "architectures": len(rows),
        "without a model class": sum(row["made"] == "no model" for row in rows),
        "not made tiny": sum(row["made"] == "not made" for row in rows),
        "walked": sum("cpu" in steps for steps in made),
        "exported and right on cpu": sum(_is_right_on_cpu(steps) for steps in made),
        "placed and right on the NPU": len(placed),
        "of these with every node on the NPU": sum(not steps["npu"].get("left") for steps in placed),
        "compared with PyTorch by another program": check["right"] + check["wrong"],
        "refused for cpu": cpu["refused"],
        "refused for the NPU": npu["refused"],
        "not proven": cpu["not proven"] + npu["not proven"],
        "wrong, and said so": cpu["wrong"] + npu["wrong"] - _silent(made, "cpu") - _silent(made, "npu"),
        "wrong with exit 0": check["wrong"] + _silent(made, "cpu") + _silent(made, "npu"),
        "crashed": crashes,
        "timeout": cpu["timeout"] + npu["timeout"],
    }


def _silent(made: Iterable[Mapping[str, Any]], step: str) -> int:
    """Builds that ended with 0 although their own numbers say that they are wrong."""
    return sum(
        steps[step]["outcome"] == "wrong" and not steps[step].get("exit_code") for steps in made if step in steps
    )


def _is_right_on_cpu(steps: Mapping[str, Mapping[str, Any]]) -> bool:
    return steps.get("cpu", {}).get("outcome") == "right" and steps.get("check", {}).get("outcome") != "wrong"


def keep_earlier(row: dict[str, Any], made: tiny_models.Row, earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """An architecture with the steps that an earlier walk ran of the same model and this one did not."""
    if earlier is None or not is_same_model(earlier, made):
        return row
    both = {**earlier["steps"], **row["steps"]}
    steps = {step: both[step] for step in LIMITS_S if step in both}
    return row | {"steps": steps, "task": row["task"] or earlier["task"]}


def summarize(
    index: Mapping[str, tiny_models.Row],
    records: Sequence[Mapping[str, Any]],
    earlier: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The content of `walk.json`; `earlier` is what it had before."""
    starts = [row for row in records if row.get("kind") == "start"]
    versions = starts[-1]["versions"] if starts else (earlier or {}).get("versions", {})
    before = {}
    if earlier is not None and all(earlier["versions"].get(name) == versions.get(name) for name in SAME):
        before = {row["name"]: row for row in earlier["architectures"]}
    steps: dict[str, dict[str, Mapping[str, Any]]] = {}
    for (model, step), row in latest(records).items():
        steps.setdefault(model, {})[step] = row
    rows = [
        keep_earlier(describe(index[name], steps.get(name, {})), index[name], before.get(name))
        for name in sorted(index)
    ]
    return {
        "schema": SCHEMA,
        "command": "python benchmarks/walk/run.py FOLDER -o WORK",
        "machine": record.machine(),
        "versions": versions,
        "shares": {"all": count(rows), "named": count([row for row in rows if row["named"]])},
        "architectures": rows,
    }


def text(value: Mapping[str, Any]) -> str:
    """JSON with a line per architecture, so that two walks can be compared line by line."""
    head = json.dumps({name: part for name, part in value.items() if name != "architectures"}, indent=1)
    rows = ",\n".join(f"  {json.dumps(row, separators=(',', ':'))}" for row in value["architectures"])
    return f'{head.removesuffix("}").rstrip()},\n "architectures": [\n{rows}\n ]\n}}\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    earlier = json.loads(asked.output.read_bytes()) if asked.output.is_file() else None
    index = tiny_models.read_index(asked.models / tiny_models.INDEX)
    value = summarize(index, read(asked.work / JOURNAL).records, earlier)
    asked.output.write_text(text(value), encoding="utf-8")
    for group, counts in value["shares"].items():
        print(f"{group}: " + ", ".join(f"{name} {number}" for name, number in counts.items()))


if __name__ == "__main__":
    main()
