"""Worker operation: which passes change a model, each run alone."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winml.modelkit.building.events import PassStarted
from winml.modelkit.building.optimize import apply
from winml.modelkit.building.optimize.result import Candidate, Candidates
from winml.modelkit.building.optimize.table import Pass, available
from winml.modelkit.building.optimize.workspace import Version, Workspace
from winml.modelkit.core.errors import ModelFileError, RunFailedError
from winml.modelkit.graph import files

if TYPE_CHECKING:
    from winml.modelkit.worker.program import Context


def candidates(args: dict[str, Any], context: Context) -> Candidates:
    """What every pass of `args["passes"]` (null: all) alone does to `args["model"]`.

    A pass that needs what others make is run after them, and only its own work is counted; `after` names them.
    """
    rows = available(args.get("passes"))
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="candidates-", ignore_cleanup_errors=True) as folder:
        workspace = Workspace(Path(folder))
        version = workspace.open(files.load(args["model"]))
        runner = apply.Runner(workspace)
        found = []
        for index, row in enumerate(rows):
            context.tell(PassStarted(name=row.name, done=index, total=len(rows)))
            found.append(_try(runner, row, version))
    return Candidates(nodes=sum(version.ops.values()), passes=tuple(found))


def _try(runner: apply.Runner, row: Pass, version: Version) -> Candidate:
    started = time.perf_counter()
    made, note = None, None
    try:
        before = runner.prepare(row, version)
        made = runner.alone(row, version)
    except (RunFailedError, ModelFileError) as error:
        runner.workspace.require_space()
        note = error.message
    change = {} if made is None else _difference(before.ops, made.ops)
    return Candidate(
        name=row.name,
        kind=row.kind,
        what=row.what,
        status="failed" if note else "no change" if made is None else "changes",
        note=note or (runner.why_not(row, version) if made is None else None),
        after=row.needs,
        nodes_delta=sum(change.values()),
        ops_delta=change,
        seconds=round(time.perf_counter() - started, 4),
    )


def _difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """How many more nodes of each operator there are; negative where there are fewer."""
    delta = Counter(after)
    delta.subtract(before)
    return {op: count for op, count in sorted(delta.items()) if count}
