"""Nodes of a cluster as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.table import table

if TYPE_CHECKING:
    from winml.modelkit.dispatch.cluster import Node
    from winml.modelkit.dispatch.node_command import NodeList, NodeRun, SchedulerRun


def run_text(result: NodeRun) -> str:
    return f"node {result.node.name} left {result.cluster} after {result.jobs_run} jobs"


def scheduler_text(result: SchedulerRun) -> str:
    return f"the scheduler at {result.cluster} has stopped"


def list_text(result: NodeList) -> str:
    if not result.nodes:
        return f"{result.cluster} has no nodes"
    rows = [("node", "jobs", "targets", "system", "winml", "onnxruntime"), *map(_row, result.nodes)]
    return table(rows, head=True, drop=(5, 4, 3))


def _row(node: Node) -> tuple[str, ...]:
    names = [f"{name} (simulated)" if name in node.simulated else name for name in sorted(node.has)]
    about = node.environment
    system = f"{about.get('system', '?')} {about.get('architecture', '?')}"
    return node.name, str(node.slots), ", ".join(names), system, node.winml, str(about.get("onnxruntime", "?"))
