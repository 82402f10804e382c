"""The text of `winml support`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from winml.modelkit.render.table import table


def _knowledge_list(result: dict[str, Any]) -> str:
    rows = [("id", "status", "effort", "title")]
    rows += [(f["id"], f["status"], f["effort"] or "", f["title"]) for f in result["findings"]]
    return table(rows) if result["findings"] else "nothing fits"


def _knowledge_show(result: dict[str, Any]) -> str:
    finding = result["finding"]
    scope = finding["scope"]
    lines = [f"{finding['id']}  {finding['title']}", f"  {finding['status']} · {finding['source']}", ""]
    lines += [f"  {finding['observation']}", ""]
    facts = [
        ("seen on", ", ".join(scope["validated_on"])),
        ("wrong on", ", ".join(scope["falsified_on"])),
        ("not tried on", ", ".join(scope["not_yet_tested_on"])),
        ("effort", finding["effort"]),
        ("goal reached", finding["goal_reached"]),
        ("recipe", finding["recipe"]),
        ("beware", "; ".join(finding["gotchas"])),
        ("gaps", ", ".join(finding["gaps"])),
        ("why", finding["mechanism"]["why"]),
        ("evidence", finding["evidence"]),
        ("answered by", finding["answered_by"]),
    ]
    return "\n".join(lines) + table([(name, value) for name, value in facts if value], indent="  ")


def _knowledge_add(result: dict[str, Any]) -> str:
    return f"{result['finding']} added to {result['file']}"


def _knowledge_check(result: dict[str, Any]) -> str:
    counted = ", ".join(f"{count} {status}" for status, count in result["statuses"].items())
    return f"{len(result['families'])} families, {counted}; no problem"


_TEXTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "knowledge-list": _knowledge_list,
    "knowledge-show": _knowledge_show,
    "knowledge-add": _knowledge_add,
    "knowledge-check": _knowledge_check,
}


def support_text(result: dict[str, Any]) -> str:
    """The answer to one of the actions."""
    return _TEXTS[result["action"]](result)
