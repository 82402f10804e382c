"""The knowledge base as one self-contained HTML page: findings by target, those on a single model collapsed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from winml.modelkit.core.plain_text import html

if TYPE_CHECKING:
    from winml.modelkit.findings.result import KbReport, ReportEntry
    from winml.modelkit.knowledge.gaps import Gap

_ORDER = ("confirmed", "replicated", "draft", "contested", "retracted")

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
article { border: 1px solid var(--line); border-radius: 6px; padding: .6rem 1rem; margin: .8rem 0; }
article h3 { margin: 0; font-size: 1.05rem; } article p { margin: .4rem 0; }
.badge { border-radius: 4px; padding: 0 .45rem; font-size: .8rem; color: #fff; }
.confirmed { background: #17703b; } .replicated { background: #1f5fa8; } .draft { background: #666; }
.contested { background: #a35400; } .retracted { background: #9c1c1c; }
.meta { color: #888; font-size: .85rem; } .retired h3 { text-decoration: line-through; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; margin: .4rem 0; }
td, th { text-align: left; padding: .15rem .6rem .15rem 0; border-bottom: 1px solid var(--soft); vertical-align: top; }
summary { cursor: pointer; } details.more > summary { color: #888; font-size: .85rem; }
nav a { margin-right: 1rem; }
"""


def _rows(rows: Iterable[Sequence[str]]) -> str:
    cells = ["".join(f"<td>{html(cell)}</td>" for cell in row) for row in rows]
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>" if cells else ""


def _paragraph(label: str, values: Iterable[str]) -> str:
    text = "; ".join(values)
    return f"<p><b>{label}</b> {html(text)}</p>" if text else ""


def _article(entry: ReportEntry) -> str:
    finding, mechanism = entry.finding, entry.finding.mechanism
    known = "confirmed" if mechanism.confirmed else "unconfirmed"
    level = f" · {finding.confidence}" if finding.confidence else ""
    retired = ' class="retired"' if finding.status == "retracted" else ""
    evidence = [
        (e.speaks, e.kind + (", simulated" if e.simulated else ""), e.model or "", e.shows, judged or "")
        for e, judged in zip(finding.evidence, entry.judged, strict=True)
    ]
    return "\n".join(
        part
        for part in (
            f'<article id="{html(finding.id)}"{retired}>',
            f"<h3>{html(finding.id)} · {html(finding.title)} "
            f'<span class="badge {html(finding.status)}">{html(finding.status)}</span></h3>',
            f'<p class="meta">{html(finding.category)} · decided by {html(finding.claim)}{html(level)}</p>',
            f"<p>{html(finding.observation)}</p>",
            _rows((m.role, m.model, m.result) for m in finding.scope.models),
            _paragraph("Falsified by:", finding.falsified_by),
            _paragraph(f"Why ({known}):", [mechanism.why] if mechanism.why else []),
            '<details class="more"><summary>evidence, caveats</summary>',
            _rows(evidence),
            _rows((o.answer, o.run, o.reason) for o in entry.outcomes),
            _paragraph("Caveats:", finding.caveats),
            _paragraph("Do not generalize to:", finding.do_not_generalize_to),
            _paragraph("Next:", finding.follow_up),
            "</details></article>",
        )
        if part
    )


def _section(target: str, entries: Iterable[ReportEntry]) -> str:
    ordered = sorted(entries, key=lambda e: (_ORDER.index(e.finding.status), e.finding.id))
    shown = [_article(e) for e in ordered if not e.single_model]
    folded = [_article(e) for e in ordered if e.single_model]
    parts = [f'<h2 id="{html(target)}">{html(target)}</h2>', *shown]
    if folded:
        parts.append(f"<details><summary>{len(folded)} findings on a single model</summary>{''.join(folded)}</details>")
    return "\n".join(parts)


def _gaps(gaps: Iterable[Gap]) -> str:
    rows = _rows((g.status, g.title, g.needed, ", ".join(g.findings), g.issue or "") for g in gaps)
    head = "<tr>" + "".join(f"<th>{h}</th>" for h in ("status", "gap", "needed", "findings", "issue")) + "</tr>"
    return f'<h2 id="gaps">Gaps</h2>{rows.replace("<table>", f"<table>{head}", 1)}'


def page(result: KbReport) -> str:
    """The whole page."""
    by_target: dict[str, list[ReportEntry]] = {}
    # Findings that apply to any EP come last.
    for entry in sorted(result.entries, key=lambda e: (e.target is None, e.target or "")):
        by_target.setdefault(entry.target or "any EP", []).append(entry)
    links = "".join(f'<a href="#{html(name)}">{html(name)} ({len(found)})</a>' for name, found in by_target.items())
    body = "\n".join(_section(name, found) for name, found in by_target.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>What is known about execution providers'
        f"</title><style>{_STYLE}</style></head><body>\n<h1>What is known about execution providers</h1>\n"
        "<p>Only confirmed findings exclude configs from a search; all others change the order. "
        "A finding applies only to the target it is listed under.</p>\n"
        f'<nav>{links}<a href="#gaps">gaps</a></nav>\n{body}\n{_gaps(result.gaps)}\n</body></html>\n'
    )
