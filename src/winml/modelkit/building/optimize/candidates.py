"""Worker operation: which passes change a model, each run alone."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from winml.modelkit.building.optimize import apply
from winml.modelkit.building.optimize.table import Pass, available
from winml.modelkit.building.optimize.workspace import Version, Workspace
from winml.modelkit.core.errors import ModelFileError, RunFailedError
from winml.modelkit.graph import files


def candidates(args: dict[str, Any], context: Any) -> dict[str, Any]:
    """`{"nodes", "passes": [...]}`: what every pass of `args["passes"]` (null: all) alone does to `args["model"]`.

    A pass that needs what others make is run after them, and only its own work is counted; `after` names them.
    """
    rows = available(args.get("passes"))
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="candidates-", ignore_cleanup_errors=True) as folder:
        workspace = Workspace(Path(folder))
        version = workspace.open(files.load(args["model"]))
        runner = apply.Runner(workspace)
        found = []
        for index, row in enumerate(rows):
            context.event("pass", **{"pass": row.name, "done": index, "total": len(rows)})
            found.append(_candidate(runner, row, version))
    return {"nodes": sum(version.ops.values()), "passes": found}


def _candidate(runner: apply.Runner, row: Pass, version: Version) -> dict[str, Any]:
    started = time.perf_counter()
    made, note = None, None
    try:
        before = runner.prepared(row, version)
        made = runner.alone(row, version)
    except (RunFailedError, ModelFileError) as error:
        runner.workspace.require_space()
        note = error.message
    status = "failed" if note else "no change" if made is None else "changes"
    change = {} if made is None else _difference(before.ops, made.ops)
    return {
        "name": row.name,
        "kind": row.kind,
        "what": row.what,
        "status": status,
        "note": note or (runner.why_not(row, version) if made is None else None),
        "after": list(row.needs),
        "nodes_delta": sum(change.values()),
        "ops_delta": change,
        "seconds": round(time.perf_counter() - started, 4),
    }


def _difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """How many more nodes of each operator there are; negative where there are fewer."""
    delta = Counter(after)
    delta.subtract(before)
    return {op: count for op, count in sorted(delta.items()) if count}
