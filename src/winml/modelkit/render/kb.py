"""The text of `winml kb`."""

from __future__ import annotations

from typing import Any

from winml.modelkit.render.table import table


def _list(result: dict[str, Any]) -> str:
    rows = [("id", "target", "status", "level", "claim", "title")]
    for f in result["findings"]:
        status = f["status"] + (" · prunes" if f["prunes"] else "")
        rows.append((f["id"], f["target"] or "any", status, f["confidence"] or "", f["claim"], f["title"]))
    text = table(rows) if len(rows) > 1 else "no finding fits"
    gaps = [("gap", "status", "title"), *((g["id"], g["status"], g["title"]) for g in result["gaps"])]
    return "\n\n".join([text, table(gaps)] if result["gaps"] else [text])


def _lines(title: str, values: list[str]) -> list[str]:
    return [f"{title}:", *(f"  - {v}" for v in values)] if values else []


def _evidence(result: dict[str, Any]) -> list[str]:
    lines = ["evidence:"] if result["finding"]["evidence"] else ["evidence: none"]
    for found, judged in zip(result["finding"]["evidence"], result["judged"], strict=True):
        simulated = ", simulated" if found["simulated"] else ""
        lines.append(f"  - {found['speaks']}, {found['kind']} ({found['form']}{simulated}), {found['run']}")
        lines.append(f"    {found['shows']}")
        if judged is not None:
            lines.append(f"    judged again: {judged}")
    return lines


def _show(result: dict[str, Any]) -> str:
    finding = result["finding"]
    scope, mechanism = finding["scope"], finding["mechanism"]
    level = f", {finding['confidence']}" if finding["confidence"] else ""
    where = "/".join(w for w in (scope["ep"], scope["device"]) if w) or "any EP"
    lines = [
        f"{finding['id']}  {finding['title']}",
        f"{finding['status']}{level} · {finding['claim']} · {where} · {finding['category']}",
        "",
        finding["observation"],
        "",
        *_lines("models", [f"{m['role']}: {m['model']}, {m['result']}" for m in scope["models"]]),
        *_evidence(result),
    ]
    if mechanism["why"]:
        source = f" ({mechanism['source']})" if mechanism["source"] else ""
        lines.append(f"why ({'confirmed' if mechanism['confirmed'] else 'unconfirmed'}): {mechanism['why']}{source}")
    lines += _lines("falsified by", finding["falsified_by"])
    lines += _lines("caveats", finding["caveats"])
    lines += _lines("do not generalize to", finding["do_not_generalize_to"])
    lines += _lines("replays", [f"{o['answer']}: {o['reason']}" for o in result["outcomes"]])
    lines += _lines("missing for", [f"{rung}: {why}" for rung, why in result["missing"].items() if why])
    lines.append(f"file: {result['file']}")
    return "\n".join(lines)


def _check(result: dict[str, Any]) -> str:
    statuses = ", ".join(f"{count} {status}" for status, count in result["statuses"].items() if count)
    presets = ", ".join(f"{name} ({count})" for name, count in result["presets"].items())
    return f"{result['findings']} findings ({statuses}), {result['gaps']} gaps, presets {presets}: no contradictions"


def _pct(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:+.1f} %" if abs(value) < 1000 else f"{value:+.0f} %"


def _pair_row(pair: dict[str, Any]) -> tuple[str, ...]:
    where = "/".join(w for w in (pair["ep"], pair["device"]) if w) or "unknown"
    effect = "" if pair["effect"] == "unknown" else pair["effect"]
    return where, pair["model"], pair["candidate"], _pct(pair["gain_pct"]), pair["answer"], effect, pair["reason"]


def _judge(result: dict[str, Any]) -> str:
    rows = [("target", "model", "config", "time saved", "answer", "effect", "why"), *map(_pair_row, result["pairs"])]
    counts = ", ".join(f"{n} {answer}" for answer, n in result["counts"].items())
    lines = [f"{result['file']} · every config against {result['base']}, {result['order']}", table(rows, indent="  ")]
    for finding in result["findings"]:
        lines += ["", f"{finding['id']} ({finding['status']})  {finding['title']}: {finding['answer']}"]
        claims = [
            (p["model"], f"{p['base']} -> {p['candidate']}", f"claimed {p['claim']}", p["claim_answer"], p["reason"])
            for p in finding["pairs"]
        ]
        lines.append(table(claims, indent="  "))
    return "\n".join([*lines, "", counts])


def _replay(result: dict[str, Any]) -> str:
    outcome = result["outcome"]
    versions = ", ".join(f"{name} {version}" for name, version in outcome["evidence"]["versions"].items())
    simulated = " · simulated" if outcome["evidence"]["simulated"] else ""
    return "\n".join(
        [
            f"{outcome['finding']}  {result['title']}",
            f"{outcome['answer']} here: {outcome['reason']}",
            f"{versions}{simulated} · written to {result['file']}",
        ]
    )


def _promote(result: dict[str, Any]) -> str:
    runs = ", ".join(result["runs"]) or "its observations"
    return f"{result['finding']} is {result['rung']} by {runs}; written to {result['file']}"


def _draft(result: dict[str, Any]) -> str:
    lines = [f"{d['id']}  {d['title']}" for d in result["drafts"]] or ["no new draft"]
    lines += [f"{name}  is drafted already" for name in result["known"]]
    lines += [f"passed over {p['hypothesis']}: {p['reason']}" for p in result["passed_over"]]
    return "\n".join([*lines, f"in {result['folder']}"])


def _report(result: dict[str, Any]) -> str:
    return f"{len(result['entries'])} findings and {len(result['gaps'])} gaps in {result['file']}"


_TEXTS = {
    "list": _list,
    "show": _show,
    "check": _check,
    "judge": _judge,
    "replay": _replay,
    "promote": _promote,
    "draft": _draft,
    "report": _report,
}


def kb_text(result: dict[str, Any]) -> str:
    """The answer to one of the actions."""
    return _TEXTS[result["action"]](result)
