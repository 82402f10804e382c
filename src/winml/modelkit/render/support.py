"""The text of `winml support`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from winml.modelkit.core.plain_text import shell_word
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


def _probe(result: dict[str, Any]) -> str:
    model = result["model"]
    parts = ", ".join(model["parts"]) or "one"
    about = f"family {model['family'] or 'none'}, task {model['task'] or 'none'}, parts: {parts}"
    rows = [("what", "target", "verdict", "why not")]
    tried = (result["build"], *result["helps"], *result["runs"])
    rows += [(t["what"], t["target"] or "", t["verdict"], t["message"] or "") for t in tried]
    words = {True: "yes", False: "no", None: "unknown"}
    known = [(o["name"], words[o["applies"]], o["because"]) for o in result["obstacles"]]
    return "\n".join(
        [
            f"{model['reference']}  {about}",
            table(rows, indent="  "),
            "obstacles",
            table(known, indent="  "),
            f"known: {', '.join((*result['knowledge'], *result['recipes'])) or 'nothing'}",
            *_skeleton(result["skeleton"], model["reference"]),
            result["sentence"],
        ]
    )


def _skeleton(found: dict[str, Any] | None, model: str) -> list[str]:
    """Input specs that a user can fill in, and the command that takes them."""
    if found is None:
        return []
    told = f"as {found['class']} takes them" if found["reason"] is None else f"nobody could be asked: {found['reason']}"
    specs = ",\n".join(f"  {json.dumps(name)}: {json.dumps(spec)}" for name, spec in found["inputs"].items())
    lines = [f"inputs to write down in a file ({told}):", f"{{\n{specs}\n}}"]
    lines.append(f"which `winml build -m {shell_word(model)} --input-specs FILE [--task TASK]` takes")
    if found["to_fill"]:
        lines.append(f"type, shape and values to fill in: {', '.join(found['to_fill'])}")
    if found["others"]:
        lines.append(f"it can do without: {', '.join(found['others'])}")
    return lines


def _inputs(result: dict[str, Any]) -> str:
    rows = [(name, spec["dtype"], str(spec["shape"])) for name, spec in result["inputs"].items()]
    return f"{result['file']}\n{table(rows, indent='  ')}"


def _produce(result: dict[str, Any]) -> str:
    if "models" in result:
        return batch_text(result)
    made = result["contribution"]
    rows = [(r["rung"], r["verdict"], r["reason"]) for r in made["ladder"]]
    head = f"{result['folder']}: reached {made['reached'] or 'nothing'} of {made['tiers']['goal']}"
    return f"{head}\n{table(rows, indent='  ')}"


def batch_text(result: dict[str, Any]) -> str:
    """The table of several models."""
    rows = [("model", "status", "reached", "why")]
    rows += [(m["model"], m["status"], m["reached"] or "", m["reason"] or "") for m in result["models"]]
    return table(rows)


def review_text(result: dict[str, Any]) -> str:
    """The verdict with everything that speaks against the contribution."""
    rows = [(item["check"], item["severity"], item["reason"]) for item in result["items"]]
    again = f"{len(result['rerun'])} commands were run again{_sandbox(result.get('sandbox'))}"
    lines = [f"{result['verdict']}  {result['folder']} · {again}", table(rows, indent="  "), _scope(result)]
    return "\n".join(filter(None, lines))


def _sandbox(found: dict[str, Any] | None) -> str:
    """Where commands were run again; nothing where none was."""
    if found is None:
        return ""
    return " WITHOUT a sandbox (`--unsandboxed`)" if found["kind"] == "none" else f" in a sandbox ({found['kind']})"


def _scope(result: dict[str, Any]) -> str:
    """What the repository changes; a folder that is no contribution has nothing to hold it against."""
    found = result.get("scope")
    if found is None:
        return ""
    if not found["asked"]:
        return f"changed files of a repository: not asked: {found['reason']}"
    return f"changed files since {found['base']}: {', '.join(found['files']) or 'none'}"


_TEXTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "probe": _probe,
    "inputs": _inputs,
    "produce": _produce,
    "review": review_text,
    "knowledge-list": _knowledge_list,
    "knowledge-show": _knowledge_show,
    "knowledge-add": _knowledge_add,
    "knowledge-check": _knowledge_check,
}


def support_text(result: dict[str, Any]) -> str:
    """The answer to one of the actions."""
    return _TEXTS[result["action"]](result)
