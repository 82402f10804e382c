"""Blocks that pages of several kinds have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.values import to_json
from winml.modelkit.render.figures.shares import Share, share_figure
from winml.modelkit.render.figures.style import ep_style
from winml.modelkit.render.pages.page import Block, Facts, Figure, Notices, Text, table
from winml.modelkit.render.units import counted

if TYPE_CHECKING:
    from winml.modelkit.core.environment import Environment
    from winml.modelkit.core.placement import Placement


def short_ep(ep: str) -> str:
    """`QNN` for `QNNExecutionProvider`."""
    return ep.removesuffix("ExecutionProvider")


def model_name(model: str) -> str:
    """The last part of a path, with both kinds of separators: a run may be of another system."""
    return PurePath(model.replace("\\", "/")).name or model


def notices(lines: Sequence[str], kind: str = "warning") -> tuple[Block, ...]:
    """Nothing for no lines."""
    return (Notices(tuple(lines), kind),) if lines else ()


def environment_facts(environment: Environment) -> Facts:
    """The machine and the versions, folded."""
    pairs = tuple((name.replace("_", " "), _flat(value)) for name, value in sorted(to_json(environment).items()))
    machine, runtime = environment.machine, environment.runtime
    where = machine.cpu or machine.architecture
    return Facts("Environment", pairs, f"{runtime.name} {runtime.version} on {where}, {machine.system}")


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key.replace('_', ' ')} {_flat(item)}" for key, item in value.items())
    return "unknown" if value is None else str(value)


def placement_sentence(placement: Placement) -> str:
    """Which part of a model ran where, and whether it should have."""
    wanted, total = short_ep(placement.requested), placement.total
    here = placement.nodes.get(placement.requested, 0)
    left = placement.fell_back
    if placement.took_nothing:
        return f"{wanted} took none of {counted(total, 'node')}: everything ran on the CPU."
    if not left:
        return f"All {total} nodes ran on {wanted}." if here == total else f"{here} of {total} nodes ran on {wanted}."
    ops = ", ".join(f"{count} {op}" for op, count in sorted(left.items(), key=lambda one: (-one[1], one[0]))[:5])
    pieces = placement.partitions.get(placement.requested)
    split = f" and split it into {counted(pieces, 'partition')}" if pieces and pieces > 1 else ""
    return f"{here} of {total} nodes ran on {wanted}; {ops} fell back to the CPU{split}."


def placement_figure(placement: Placement) -> tuple[Block, ...]:
    """Nodes by EP; nothing for a model without nodes."""
    if not placement.total:
        return ()
    shares = []
    for ep, nodes in sorted(placement.nodes.items(), key=lambda one: -one[1]):
        style, pieces = ep_style(ep), placement.partitions.get(ep)
        inside = f" in {counted(pieces, 'partition')}" if pieces else ""
        said = f"{short_ep(ep)}: {counted(nodes, 'node')}{inside}, {100 * nodes / placement.total:.1f} %"
        shares.append(
            Share(f"{short_ep(ep)}{inside}", said, nodes, f"{nodes:,} ({100 * nodes / placement.total:.0f} %)",
                  style.role, style.glyph)
        )  # fmt: skip
    sentence = placement_sentence(placement)
    left = [(op, str(n), str(placement.by_setting.get(op, "") or "")) for op, n in placement.cpu_ops.items()]
    values = (
        table("Operators on the CPU", ("type", "nodes", "by a setting of the EP"), left, numeric=(1, 2))
        if left and placement.requested != "CPUExecutionProvider"
        else None
    )
    return (
        Figure(
            "placement", "Where the nodes ran", sentence, lambda width: share_figure(shares, sentence, width), values
        ),
    )


def placement_blocks(placement: Placement) -> tuple[Block, ...]:
    """Nodes by EP where several ran them; else the sentence alone."""
    if len([nodes for nodes in placement.nodes.values() if nodes]) > 1 or placement.took_nothing:
        return placement_figure(placement)
    return (Text(placement_sentence(placement), "Where the nodes ran"),) if placement.total else ()


def cosine_cover(cosines: Sequence[float]) -> tuple[float, float]:
    """What an axis of cosines reaches to: 1, and far enough from it that ticks differ."""
    return 1.0, min(0.999, *cosines)
