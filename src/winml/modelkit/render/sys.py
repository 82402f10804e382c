"""The text of `winml sys`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from winml.modelkit.render.marks import mark
from winml.modelkit.render.table import table
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.ep.problems import Problem
    from winml.modelkit.ep.sys_command import EPState, Installation, SysResult, TargetState


def machine_text(result: SysResult) -> str:
    machine = result.machine
    return (
        f"machine  {machine.system} {machine.release} {machine.architecture} · {machine.cores} cores · "
        f"{size(machine.memory_bytes)} memory\n"
        f"runtime  onnxruntime {result.onnxruntime or 'not installed'} · Python {result.python} · "
        f"winml-modelkit {result.winml}"
    )


def _group(targets: Iterable[TargetState], source: str) -> list[tuple[str, str, str, str]]:
    """Targets with the same answer share a line."""
    groups: dict[tuple[str, str], list[str]] = {}
    for state in targets:
        reason = "; ".join(r for r in (state.reason, state.hint) if r)
        groups.setdefault((state.status, reason), []).append(state.target)
    return [(", ".join(names), mark(status), source, reason) for (status, reason), names in groups.items()]


def _source(installation: Installation) -> str:
    private = " (own environment)" if installation.environment else ""
    return f"{installation.package} {installation.version or ''}".strip() + private


def ep_text(eps: Iterable[EPState]) -> str:
    """One line per target: whether it can be used, and why not."""
    rows = [("target", "status", "from", "")]
    for ep in eps:
        for installation in ep.installations:
            rows += _group(installation.targets, _source(installation))
        rows += _group(ep.missing, "")
    return table(rows, head=True, below=3)


def device_text(eps: Iterable[EPState]) -> str:
    """One line per device an EP found."""
    rows = [("kind", "vendor", "device id", "found by")]
    for ep in eps:
        for found in ep.installations:
            rows += [(d.kind, d.vendor or "unknown", f"{d.device_id:#06x}", ep.ep) for d in found.devices]
    return table(rows, head=True)


def problems_text(problems: Iterable[Problem]) -> str:
    """What is wrong with the commands that mend it, then what is not installed; empty when there is neither."""
    listed = tuple(problems)
    blocks = []
    for heading, optional in (("problems", False), ("not installed", True)):
        found = [problem for problem in listed if problem.optional == optional]
        lines = [heading] if found else []
        for problem in found:
            lines += [f"  {problem.what}: {problem.why}", *(f"    {command}" for command in problem.commands)]
        blocks += lines
    return "\n".join(blocks)
