"""The report of a search as Markdown and as one HTML page that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import Any

from winml.modelkit.core import plain_text
from winml.modelkit.render.autoconfig import (
    accuracy,
    bytes_of,
    champion_text,
    count_of,
    interval,
    percent,
    shown,
    times_of,
    word,
)
from winml.modelkit.render.pareto_plot import Point, scatter
from winml.modelkit.render.table import markdown_table

_HEAD = ("trial", "config", "ms", "speed", "saved", "95 %", "verdict", "rounds", "accuracy", "size", "seconds")

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 68rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { margin-top: 2rem; border-bottom: 1px solid var(--line); }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
td, th { text-align: left; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid var(--soft); vertical-align: top; }
tr.champion td { font-weight: 600; } svg { max-width: 100%; height: auto; }
"""


def _trial_rows(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for trial in result["trials"]:
        verdict = shown(trial)
        rows.append(
            (
                trial["id"],
                trial["label"],
                *times_of(trial),
                percent(None if verdict is None else verdict["gain_pct"]),
                interval(verdict),
                word(trial),
                str(trial["rounds"]) if trial["rounds"] else "",
                accuracy(trial),
                bytes_of(trial),
                f"{trial['seconds']:.1f}",
            )
        )
    return rows


def _failed_rows(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (trial["id"], trial["label"], word(trial), trial["reason"])
        for trial in result["trials"]
        if trial["outcome"] in ("failed", "inaccurate", "slower")
    ]


def _notes(result: dict[str, Any], kinds: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [
        (f"{note['knob']}={note['level']}", note["kind"], note["source"], note["reason"])
        for note in result["insight"]
        if note["kind"] in kinds
    ]


def _environment_rows(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [(name, _flat(value)) for name, value in sorted(result["environment"].items())]


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_flat(item)}" for key, item in value.items())
    return "unknown" if value is None else str(value)


def _sections(result: dict[str, Any]) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Titles, heads and rows of the tables of a report; one without rows is left out."""
    found = [
        ("Trials", _HEAD, _trial_rows(result)),
        ("What failed, and why", ("trial", "config", "verdict", "why"), _failed_rows(result)),
        ("What was left out, and why", ("level", "kind", "by", "why"), _notes(result, ("skip", "blocked"))),
        ("What came early or late, and why", ("level", "kind", "by", "why"), _notes(result, ("boost", "order"))),
        ("Environment", ("", ""), _environment_rows(result)),
    ]
    return [section for section in found if section[2]]


def _facts(result: dict[str, Any]) -> list[str]:
    targets = ", ".join(f"{t['target']}{' (simulated)' if t['simulated'] else ''}" for t in result["targets"])
    lines = [
        f"model {result['model']} ({result['model_digest']})",
        f"target {targets}, searched for {result['objective']}",
        f"accuracy gate: {result['gate']['words']}",
        f"{len(result['trials'])} trials of {count_of(result['choices'])} choices in {result['seconds']:.0f} s",
        str(result["ended"]),
    ]
    drafts = [f"draft findings: {', '.join(result['drafts'])}"] if result["drafts"] else []
    notes = [note for note in result["notes"] if note != result["gate"]["words"]]
    return [*lines, *notes, *drafts]


def _points(result: dict[str, Any]) -> list[Point]:
    found = []
    best = result["champion"]["id"] if result["champion"] else None
    for trial in result["trials"]:
        verdict, known = shown(trial), trial["accuracy"]
        works = trial["outcome"] in ("baseline", "measured") and known is not None and known["value"] is not None
        gain = 0.0 if verdict is None else verdict["gain_pct"]
        if works and gain is not None:
            front, name = trial["id"] in result["pareto"], trial["id"]
            found.append(Point(gain, known["value"], name, trial["label"], front=front, marked=name == best))
    return found


def _axes(result: dict[str, Any]) -> tuple[str, str]:
    known = next((t["accuracy"] for t in result["trials"] if t["accuracy"] is not None), None)
    saved = {"latency": "time saved, %", "size": "bytes saved, %", "placement": "pieces saved, %"}
    return saved[result["objective"]], "accuracy" if known is None else str(known["metric"])


def markdown(result: dict[str, Any]) -> str:
    """The report as Markdown."""
    result = plain_text.values(result)
    parts = ["# Search for the best config", "```text\n" + _summary(result) + "\n```"]
    parts.append("\n".join(f"- {plain_text.markdown(line)}" for line in _facts(result)))
    for title, head, rows in _sections(result):
        parts += [f"## {title}", markdown_table(head, rows)]
    return "\n\n".join(parts) + "\n"


def _summary(result: dict[str, Any]) -> str:
    return champion_text(result) if result["champion"] else "no champion: the search did not end"


def _html_table(head: tuple[str, ...], rows: list[tuple[str, ...]], best: str | None) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = []
    for row in rows:
        mark = ' class="champion"' if row[0] == best else ""
        lines.append(f"<tr{mark}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    return f"<table><tr>{top}</tr>{''.join(lines)}</table>"


def html(result: dict[str, Any]) -> str:
    """The report as one page with the plot of the front."""
    result = plain_text.values(result)
    best = result["champion"]["id"] if result["champion"] else None
    tables = "\n".join(
        f"<h2>{escape(title)}</h2>\n{_html_table(head, rows, best)}" for title, head, rows in _sections(result)
    )
    facts = "".join(f"<li>{escape(line)}</li>" for line in _facts(result))
    plot = scatter(_points(result), *_axes(result))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Search for the best config</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>Search for the best config</h1>\n"
        f"<pre>{escape(_summary(result))}</pre>\n<ul>{facts}</ul>\n<h2>What is gained and what it costs</h2>\n"
        f"{plot}\n{tables}\n</body></html>\n"
    )
