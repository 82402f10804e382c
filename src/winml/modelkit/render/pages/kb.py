"""The report of `winml kb`: what is known about execution providers, and the evidence for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from winml.modelkit.core.verdict import speedup
from winml.modelkit.render.figures.dots import DotRow
from winml.modelkit.render.figures.evidence import CLAIMED, EvidenceRow, evidence_figure
from winml.modelkit.render.figures.legend import Key
from winml.modelkit.render.figures.shares import Share, share_figure
from winml.modelkit.render.figures.style import STATE_GLYPHS, STATE_ROLES
from winml.modelkit.render.marks import STATES
from winml.modelkit.render.pages.page import Block, Cell, Facts, Figure, Group, Page, Table, Text, slug, table
from winml.modelkit.render.times import speedup_interval, speedup_text
from winml.modelkit.render.units import counted

if TYPE_CHECKING:
    from winml.modelkit.core.evidence import DistanceEvidence, Evidence
    from winml.modelkit.core.finding import Expectation, Finding, Status
    from winml.modelkit.findings.result import EvidenceGain, KbReport, ReportEntry
    from winml.modelkit.knowledge.gaps import Gap

_ORDER: tuple[Status, ...] = ("confirmed", "replicated", "draft", "contested", "retracted")
_STYLES = {"supported": "good", "not supported": "bad", "insufficient": "unsure", None: "quiet"}
"""What evidence says of its claim -> style in `render/marks.py`."""
_MEANINGS = {
    "good": "supports it",
    "bad": "does not support it",
    "unsure": "cannot tell",
    "quiet": "nothing is claimed of it",
}
_MOST_ROWS = 20
"""Pieces of evidence of a finding that are drawn."""


def kb_page(result: KbReport) -> Page:
    """Findings by target, with their evidence against what they claim, and what is missing."""
    by_target: dict[str, list[ReportEntry]] = {}
    # Findings that apply to any EP come last.
    for entry in sorted(result.entries, key=lambda e: (e.target is None, e.target or "")):
        by_target.setdefault(entry.target or "any EP", []).append(entry)
    blocks: list[Block] = [*_status_figure(result.entries)]
    if by_target:
        blocks.append(_overview(by_target))
    blocks += [_section(target, entries) for target, entries in by_target.items()]
    blocks += _gaps(result.gaps)
    return Page("kb", "What is known about execution providers", _answer(result), tuple(blocks))


def _answer(result: KbReport) -> str:
    counts = Counter(entry.finding.status for entry in result.entries)
    listed = ", ".join(f"{counts[status]} {status}" for status in _ORDER if counts[status])
    gaps = f" and {counted(len(result.gaps), 'gap')}" if result.gaps else ""
    if not result.entries:
        return f"No findings{gaps}."
    return (
        f"{counted(len(result.entries), 'finding')} ({listed}){gaps}. Only confirmed findings exclude configs from a "
        "search; all others change the order."
    )


def _status_figure(entries: Sequence[ReportEntry]) -> tuple[Block, ...]:
    counts = Counter(entry.finding.status for entry in entries)
    shares = []
    for status in _ORDER:
        count, style = counts[status], STATES[status]
        if count:
            said = f"{count} of {counted(len(entries), 'finding')}: {status}"
            shares.append(Share(status, said, count, str(count), STATE_ROLES[style], STATE_GLYPHS[style]))
    if len(shares) < 2:
        return ()
    proven = counts["confirmed"] + counts["replicated"]
    sentence = (
        f"{proven} of {len(entries)} findings have raw evidence of two runs; {counts['draft']} wait for it, and there "
        f"is something against {counts['contested'] + counts['retracted']}."
    )
    return (Figure("statuses", "How sure it is", sentence, lambda width: share_figure(shares, sentence, width)),)


def _overview(by_target: dict[str, list[ReportEntry]]) -> Table:
    rows: list[tuple[Cell | str, ...]] = []
    for target, entries in by_target.items():
        counts = Counter(entry.finding.status for entry in entries)
        numbers = (str(counts[status]) if counts[status] else "" for status in _ORDER)
        rows.append((Cell(target, link=f"#{slug(target)}"), str(len(entries)), *numbers))
    note = "A finding applies only to the target it is listed under."
    head = ("target", "findings", *_ORDER)
    return table("Findings by target", head, rows, numeric=range(1, len(head)), note=note)


def _section(target: str, entries: Iterable[ReportEntry]) -> Group:
    ordered = sorted(entries, key=lambda e: (_ORDER.index(e.finding.status), e.finding.id))
    blocks: list[Block] = [_finding(entry) for entry in ordered if not entry.single_model]
    single = tuple(_finding(entry) for entry in ordered if entry.single_model)
    if single:
        blocks.append(Group("", single, folded=f"{counted(len(single), 'finding')} on a single model"))
    return Group(target, tuple(blocks), anchor=slug(target))


def _finding(entry: ReportEntry) -> Group:
    finding = entry.finding
    models = [(model.role, model.model, model.result) for model in finding.scope.models]
    blocks: list[Block] = [Text(finding.observation), *_gain_figure(entry), *_distance_figure(finding)]
    if models:
        blocks.append(table("", ("role", "model", "result"), models))
    blocks += [*_reasons(finding), *_evidence(entry), _more(finding)]
    return Group(f"{finding.id} · {finding.title}", tuple(blocks), finding.status, finding.id)


# Evidence


def _keys(answers: Iterable[str | None]) -> list[Key]:
    styles = list(dict.fromkeys(_STYLES[answer] for answer in answers))
    ordered = [style for style in _MEANINGS if style in styles]
    return [CLAIMED, *(Key(STATE_GLYPHS[style], _MEANINGS[style], STATE_ROLES[style]) for style in ordered)]


def _sentence(answers: Sequence[str | None], what: str) -> str:
    """How many pieces of evidence support what is claimed of them."""
    counts = Counter(answers)
    one, against = len(answers) == 1, counts["not supported"]
    verb, whom = ("supports", "it") if one else ("support", "them")
    said = [f"{counts['supported']} of {counted(len(answers), what)} {verb} what is claimed of {whom}"]
    if against:
        said.append(f"{against} {'does' if against == 1 else 'do'} not")
    if counts["insufficient"]:
        said.append(f"{counts['insufficient']} cannot tell")
    return "; ".join(said) + "."


def _label(evidence: Evidence) -> str:
    control = "" if evidence.speaks == "for" else f" ({evidence.speaks})"
    return f"{evidence.model or evidence.run}{control}"


def _gain_figure(entry: ReportEntry) -> tuple[Block, ...]:
    """Times that evidence shows to be saved; nothing where it has none."""
    found = [(e, gain) for e, gain in zip(entry.finding.evidence, entry.gains, strict=False) if gain is not None]
    if not found:
        return ()
    rows = [_gain_row(evidence, gain) for evidence, gain in found[:_MOST_ROWS]]
    answers = [gain.answer for _, gain in found]
    sentence = _sentence(answers, "measurement")
    levels = sorted({gain.level for _, gain in found if gain.interval_pct is not None})
    if levels:
        sentence += f" Lines are {' or '.join(f'{100 * level:.0f} %' for level in levels)} intervals."
    if any(_is_inside(gain) and gain.answer != "supported" for _, gain in found):
        sentence += " One that lies in what is claimed proves nothing where times drift by as much without a change."
    if len(found) > _MOST_ROWS:
        sentence += f" The first {_MOST_ROWS} are drawn."
    keys = _keys(answers)

    def draw(width: float) -> str:
        return evidence_figure(rows, "times as fast", sentence, width, keys=keys, line=(1.0, "same speed"), log=True)

    return (Figure(f"evidence-{entry.finding.id}", "", sentence, draw),)


def _is_inside(gain: EvidenceGain) -> bool:
    """Whether the whole interval agrees with the claim."""
    if gain.interval_pct is None or gain.claimed_pct is None:
        return False
    (low, high), (least, largest) = gain.interval_pct, gain.claimed_pct
    return (least is None or low >= least) and (largest is None or high <= largest)


def _gain_row(evidence: Evidence, gain: EvidenceGain) -> EvidenceRow:
    style, factor = _STYLES[gain.answer], speedup(gain.gain_pct)
    bounds = None if gain.interval_pct is None else (speedup(gain.interval_pct[0]), speedup(gain.interval_pct[1]))
    between = "" if bounds is None else f" {speedup_interval(factor, bounds)}"
    claimed = None
    if gain.claimed_pct is not None:
        low, high = gain.claimed_pct
        claimed = (None if low is None else speedup(low), None if high is None else speedup(high))
    simulated = ", simulated" if evidence.simulated else ""
    words = f"{speedup_text(factor)}{between}, {gain.answer or 'no claim'}"
    said = f"{_label(evidence)}: {words}, {evidence.run}{simulated}"
    text = f"{speedup_text(factor)} {STATE_GLYPHS[style]}"
    return EvidenceRow(DotRow(_label(evidence), said, factor, text, bounds, (), STATE_ROLES[style]), claimed)


def _distance_figure(finding: Finding) -> tuple[Block, ...]:
    """How far outputs are apart, where an experiment says how far they should be."""
    expect = None if finding.experiment is None else finding.experiment.expect
    found = [e for e in finding.evidence if e.form == "distance"]
    if expect is None or not found:
        return ()
    by_cosine = expect.cosine_at_most is not None
    pairs = [(e, row) for e in found if (row := _distance_row(e, expect)) is not None]
    if not pairs or not (by_cosine or expect.relative_error_at_least is not None):
        return ()
    rows, answers = [row for _, (row, _) in pairs], [answer for _, (_, answer) in pairs]
    axis = "cosine of the outputs" if by_cosine else "relative error of the outputs"
    bound = f"at most {expect.cosine_at_most:g}" if by_cosine else f"at least {expect.relative_error_at_least:g}"
    sentence = f"{_sentence(answers, 'comparison')} Claimed: {axis} {bound}."
    keys, log = _keys(answers), not by_cosine and all(row.dot.value > 0 for row in rows)
    return (
        Figure(f"distance-{finding.id}", "", sentence,
               lambda width: evidence_figure(rows, axis, sentence, width, keys=keys, log=log)),
    )  # fmt: skip


def _distance_row(evidence: DistanceEvidence, expect: Expectation) -> tuple[EvidenceRow, str] | None:
    """The output that is farthest off; None where outputs cannot be compared."""
    worst = min(evidence.data.outputs, key=lambda o: -1.0 if o.cosine is None else o.cosine, default=None)
    if worst is None or worst.cosine is None or worst.relative is None:
        return None
    value = worst.cosine
    claimed: tuple[float | None, float | None] = (None, expect.cosine_at_most)
    met = expect.cosine_at_most is not None and value <= expect.cosine_at_most
    if expect.cosine_at_most is None:
        limit = expect.relative_error_at_least or 0.0
        value, claimed, met = worst.relative, (limit, None), worst.relative >= limit
    answer = "supported" if met else "not supported"
    style = _STYLES[answer]
    simulated = ", simulated" if evidence.simulated else ""
    said = f"{_label(evidence)}: cosine {worst.cosine:.6f}, relative error {worst.relative:.3g}, {answer}"
    dot = DotRow(
        _label(evidence), f"{said}, {evidence.run}{simulated}", value, f"{value:.4g} {STATE_GLYPHS[style]}", None, (),
        STATE_ROLES[style],
    )  # fmt: skip
    return EvidenceRow(dot, claimed), answer


def _evidence(entry: ReportEntry) -> tuple[Block, ...]:
    """Every piece of evidence and every replay, folded."""
    finding = entry.finding
    rows = [
        (e.speaks, e.kind + (", simulated" if e.simulated else ""), e.model or "", e.shows, judged or "", e.run)
        for e, judged in zip_longest(finding.evidence, entry.judged)
    ]
    blocks: list[Block] = []
    if rows:
        head = ("speaks", "kind", "model", "shows", "judged again", "run")
        folded = counted(len(rows), "piece") + " of evidence"
        blocks.append(table("", head, rows, folded=folded))
    if entry.outcomes:
        replays = [(Cell(o.answer, o.answer), o.run, o.reason) for o in entry.outcomes]
        blocks.append(table("", ("answer", "run", "why"), replays, folded=counted(len(replays), "replay")))
    return tuple(blocks)


def _reasons(finding: Finding) -> tuple[Block, ...]:
    """What speaks against it and why it is so: what a reader asks first."""
    mechanism = finding.mechanism
    known = "confirmed" if mechanism.confirmed else "not confirmed"
    pairs = [
        ("falsified by", "; ".join(finding.falsified_by)),
        (f"why ({known})", mechanism.why or ""),
    ]
    shown = tuple((name, text) for name, text in pairs if text)
    return (Facts("", shown),) if shown else ()


def _more(finding: Finding) -> Facts:
    """Everything else, folded."""
    level = f", level {finding.confidence}" if finding.confidence else ""
    versions = ", ".join(f"{name} {' and '.join(of)}" for name, of in finding.scope.versions.items())
    pairs = [
        ("claim", f"decided by {finding.claim}{level}"),
        ("category", finding.category),
        ("seen with", versions),
        ("only where", ", ".join(map(str, finding.scope.graph))),
        ("caveats", "; ".join(finding.caveats)),
        ("not to be generalized to", "; ".join(finding.do_not_generalize_to)),
        ("next", "; ".join(finding.follow_up)),
        ("source", finding.source),
    ]
    return Facts("", tuple((name, text) for name, text in pairs if text), "claim, caveats, source")


def _gaps(gaps: Sequence[Gap]) -> list[Block]:
    if not gaps:
        return []
    rows = [(gap.status, gap.title, gap.needed, ", ".join(gap.findings), gap.issue or "") for gap in gaps]
    return [table("Gaps", ("status", "gap", "needed", "findings", "issue"), rows, note="What tools and EPs lack.")]
