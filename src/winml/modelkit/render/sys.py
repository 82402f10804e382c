"""The text of `winml sys`."""

from __future__ import annotations

from typing import Any

from winml.modelkit.render.table import table
from winml.modelkit.render.units import size


def machine_text(result: dict[str, Any]) -> str:
    machine = result["machine"]
    return "\n".join(
        [
            f"machine  {machine['system']} {machine['release']} {machine['architecture']} · {machine['cores']} cores · "
            f"{size(machine['memory_bytes'])} memory",
            f"runtime  onnxruntime {result['onnxruntime'] or 'not installed'} · Python {result['python']} · "
            f"winml-modelkit {result['winml']}",
        ]
    )


def _grouped(targets: list[dict[str, Any]], source: str) -> list[tuple[str, str, str, str]]:
    """Targets with the same answer share a line."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for row in targets:
        reason = "; ".join(r for r in (row["reason"], row["hint"]) if r)
        grouped.setdefault((row["status"], reason), []).append(row["target"])
    return [(", ".join(names), status, source, reason) for (status, reason), names in grouped.items()]


def _source(installation: dict[str, Any]) -> str:
    private = " (own environment)" if installation["environment"] else ""
    return f"{installation['package']} {installation['version'] or ''}".strip() + private


def ep_text(result: dict[str, Any]) -> str:
    """One line per target: whether it can be used, and why not."""
    rows = [("target", "status", "from", "")]
    for ep in result["eps"]:
        for installation in ep["installations"]:
            rows += _grouped(installation["targets"], _source(installation))
        rows += _grouped(ep["missing"], "")
    return table(rows)


def device_text(result: dict[str, Any]) -> str:
    """One line per device an EP found."""
    rows = [("kind", "vendor", "device id", "found by")]
    for ep in result["eps"]:
        for installation in ep["installations"]:
            rows += [
                (d["kind"], d["vendor"] or "unknown", f"{d['device_id']:#06x}", ep["ep"])
                for d in installation["devices"]
            ]
    return table(rows)
