"""Nodes of a cluster as text."""

from __future__ import annotations

from typing import Any

from winml.modelkit.render.table import table


def node_text(result: dict[str, Any]) -> str:
    """What a node was, or who is there."""
    if result["action"] == "join":
        return f"node {result['node']['name']} left {result['cluster']} after {result['jobs_run']} jobs"
    if result["action"] == "scheduler":
        return f"the scheduler at {result['cluster']} has ended"
    if not result["nodes"]:
        return f"{result['cluster']} has no nodes"
    head = ("node", "jobs", "targets", "system", "winml", "onnxruntime")
    return table([head, *map(_row, result["nodes"])])


def _row(node: dict[str, Any]) -> tuple[str, ...]:
    names = [f"{name} (simulated)" if name in node["simulated"] else name for name in sorted(node["has"])]
    about = node["environment"]
    system = f"{about.get('system', '?')} {about.get('architecture', '?')}"
    return node["name"], str(node["slots"]), ", ".join(names), system, node["winml"], about.get("onnxruntime", "?")
