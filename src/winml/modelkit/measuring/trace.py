"""`winml trace`: operator traces as files, and what differs between two of them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, TraceEmpty, UnavailableError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.op_trace import OpTraceResult, op_trace_from_json
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.values import key
from winml.modelkit.measuring.trace_diff import TraceDiff, diff

_HINTS = {
    "no_data": "run it again with `--iterations 5`; `-o FILE` keeps what the EP wrote",
    "parse_failed": "this EP writes a format that winml does not know; `-o FILE` keeps it for a bug report",
    "not_run": "the traced block did not end; run it again",
}


def read_trace(path: Path) -> OpTraceResult:
    """The usable trace in a file."""
    try:
        value = read_json(path)
    except FileNotFoundError as error:
        raise DataError(f"trace not found: `{path}`", hint=near_path(path)) from error
    except PermissionError as error:
        raise UnavailableError(f"trace cannot be read: `{path}`") from error
    except (OSError, ValueError) as error:
        raise DataError(f"`{path}` is not a trace: {error}") from error
    trace = op_trace_from_json(value, source=f"`{path}`")
    if not trace.usable or not trace.operators:
        raise DataError(f"`{path}` holds no operators: its status is {trace.status} ({trace.error})")
    return trace


def no_trace(trace: OpTraceResult, result: object) -> TraceEmpty:
    """The error for a trace without data, with what else was measured."""
    return TraceEmpty(
        f"no operator trace ({trace.status}): {trace.error or 'the monitor gave no reason'}",
        hint=_HINTS.get(trace.status),
        result=result,
    )


def trace_notices(trace: OpTraceResult | None) -> list[str]:
    """Warnings and notes about a trace."""
    if trace is None:
        return []
    found = list(trace.summary.get("notes", ()))
    if trace.status == "basic_fallback":
        why = f": {trace.error}" if trace.error else ""
        found.insert(0, f"the trace is basic instead of detail ({trace.fallback_reason}){why}")
    return found


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceDiffResult(CommandResult):
    """What changed from one trace to another."""

    schema: Literal["winml/trace/1"] = "winml/trace/1"
    ok: Literal[True] = True
    before: str
    after: str
    diff: TraceDiff = key(inline=True)


def diff_traces(before: str, after: str) -> TraceDiffResult:
    """What changed from the trace in one file to that in another."""
    return TraceDiffResult(before=before, after=after, diff=diff(read_trace(Path(before)), read_trace(Path(after))))
