"""The report of a search as Markdown and as one self-contained HTML page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from winml.modelkit.core import plain_text
from winml.modelkit.core.values import to_json
from winml.modelkit.render.autoconfig import (
    artifact_size,
    champion_text,
    drop_empty_columns,
    gain,
    gain_interval,
    model_name,
    quality,
    quality_name,
    skipped_text,
    targets,
    trial_count,
    trial_reason,
    trial_state,
)
from winml.modelkit.render.figures.pictures import search_picture
from winml.modelkit.render.figures.style import FIGURE_STYLE
from winml.modelkit.render.table import markdown_table
from winml.modelkit.render.times import milliseconds

if TYPE_CHECKING:
    from winml.modelkit.search.result import SearchResult

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 68rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { margin-top: 2rem; border-bottom: 1px solid var(--line); }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
td, th { text-align: left; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid var(--soft); vertical-align: top; }
tr.champion td { font-weight: 600; }
"""


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_flat(item)}" for key, item in value.items())
    return "unknown" if value is None else str(value)


def _tables(result: SearchResult) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Titles, heads and rows of the tables of a report; tables without rows are skipped."""
    speed = "speed" if result.objective == "latency" else "saved"
    head: tuple[str, ...] = (
        "trial",
        "state",
        "config",
        speed,
        "95 %",
        "ms",
        "rounds",
        quality_name(result),
        "size",
        "seconds",
    )
    trials: list[tuple[str, ...]] = [head]
    for trial in result.trials:
        verdict = trial.deciding_verdict
        trials.append(
            (
                trial.id,
                trial_state(trial),
                trial.label,
                gain(verdict),
                gain_interval(verdict),
                "" if trial.times is None else milliseconds(trial.times.candidate_ms),
                str(trial.rounds) if trial.rounds else "",
                quality(trial.accuracy),
                artifact_size(trial),
                f"{trial.seconds:.1f}",
            )
        )
    explained: list[tuple[str, ...]] = [
        (trial.id, trial_state(trial), trial.label, trial_reason(trial))
        for trial in result.trials
        if trial_reason(trial)
    ]
    skipped: list[tuple[str, ...]] = []
    ordered: list[tuple[str, ...]] = []
    for note in result.insight:
        rows = skipped if note.kind in ("skip", "blocked") else ordered
        rows.append((f"{note.knob}={note.level}", note.kind, note.source, note.reason))
    environment: list[tuple[str, ...]] = [
        (name, _flat(value)) for name, value in sorted(to_json(result.environment).items())
    ]
    head, *trials = drop_empty_columns(trials)
    found = [
        ("Trials", head, trials),
        ("Reasons", ("trial", "state", "config", "why"), explained),
        ("Skipped settings", ("setting", "kind", "by", "why"), skipped),
        ("Reordered settings", ("setting", "kind", "by", "why"), ordered),
        ("Environment", ("", ""), environment),
    ]
    return [one for one in found if one[2]]


def _facts(result: SearchResult) -> list[str]:
    gate = "accuracy" if result.gate.limits.kind == "task" else "agreement"
    lines = [
        f"model {result.model} ({result.model_digest})",
        f"target {targets(result)}, searched for {result.objective}",
        f"{gate} gate: {result.gate.words}",
        f"{trial_count(result)} in {result.seconds:.0f} s",
        result.ended,
        *filter(None, [skipped_text(result.insight, result.objective)]),
    ]
    drafts = [f"draft findings: {', '.join(result.drafts)}"] if result.drafts else []
    return [*lines, *(note for note in result.notes if note != result.gate.words), *drafts]


def _champion_id(result: SearchResult) -> str | None:
    return None if result.champion is None else result.champion.trial.id


def _summary(result: SearchResult) -> str:
    if result.champion is None:
        return "no champion: the search is not finished"
    return champion_text(result, result.champion)


def _title(result: SearchResult) -> str:
    return f"{model_name(result)} on {targets(result)}: search for the best config"


def markdown(result: SearchResult) -> str:
    """The report as Markdown."""
    result = plain_text.values(result)
    parts = [f"# {plain_text.markdown(_title(result))}", "```text\n" + _summary(result) + "\n```"]
    parts.append("\n".join(f"- {plain_text.markdown(line)}" for line in _facts(result)))
    for title, head, rows in _tables(result):
        parts += [f"## {title}", markdown_table(head, rows)]
    return "\n\n".join(parts) + "\n"


def _html_table(head: tuple[str, ...], rows: list[tuple[str, ...]], best: str | None) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = []
    for row in rows:
        mark = ' class="champion"' if row[0] == best else ""
        lines.append(f"<tr{mark}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    return f"<table><tr>{top}</tr>{''.join(lines)}</table>"


def html(result: SearchResult) -> str:
    """The report as one page with the plot of the front."""
    result = plain_text.values(result)
    best = _champion_id(result)
    tables = "\n".join(
        f"<h2>{escape(title)}</h2>\n{_html_table(head, rows, best)}" for title, head, rows in _tables(result)
    )
    facts = "".join(f"<li>{escape(line)}</li>" for line in _facts(result))
    title = escape(_title(result))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}{FIGURE_STYLE}</style></head><body>\n<h1>{title}</h1>\n"
        f"<pre>{escape(_summary(result))}</pre>\n<ul>{facts}</ul>\n<h2>Gain and {escape(quality_name(result))}</h2>\n"
        f"{search_picture(result) or '<p>no trial has both numbers</p>'}\n{tables}\n</body></html>\n"
    )
