"""The report of `winml compare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from winml.modelkit.core.measurement import NS_PER_MS
from winml.modelkit.core.statistics import median, std
from winml.modelkit.render.compare import SIZES
from winml.modelkit.render.figures.dots import DotRow, dot_figure
from winml.modelkit.render.figures.speedups import rows_of_compare, speedup_figure
from winml.modelkit.render.figures.speedups import sentence as speedup_sentence
from winml.modelkit.render.figures.style import GLYPHS, ROLES
from winml.modelkit.render.generation import spread_text, whole_size
from winml.modelkit.render.pages.common import (
    cosine_cover,
    environment_facts,
    notices,
    placement_figure,
    placement_sentence,
)
from winml.modelkit.render.pages.page import Block, Cell, Facts, Figure, Page, Row, Table, table
from winml.modelkit.render.times import milliseconds, speedup_interval, speedup_text
from winml.modelkit.render.units import counted, ms

if TYPE_CHECKING:
    from winml.modelkit.core.distance import Distance
    from winml.modelkit.core.latency import Spread
    from winml.modelkit.core.verdict import Clock
    from winml.modelkit.measuring.calibration import Calibration
    from winml.modelkit.measuring.compare_result import Candidate, ComparedArm, CompareResult

_CLOCKS: dict[Clock, str] = {"cpu": "CPU time", "wall": "wall time", "memory": "peak memory"}
_MOST_DOTS = 40
"""Candidates that a picture shows; the table has all."""


def compare_page(result: CompareResult) -> Page:
    """Whether candidates are faster than the base, by how much and how sure that is."""
    best = best_candidate(result)
    blocks = (
        *notices(result.warnings),
        *_speedups(result),
        _candidates(result),
        *_latency(result),
        *_agreement(result),
        *_placements(result),
        *_conditions(result),
        environment_facts(result.environment),
    )
    title = f"{counted(len(result.candidates), 'candidate')} against {result.base.label} on {result.base.arm.target}"
    if len(result.candidates) == 1:
        title = f"{result.candidates[0].label} against {result.base.label} on {result.base.arm.target}"
    answer = f"{_answer(result, best)}{_gate_words(result)}"
    return Page("compare", title, answer, blocks, None if best is None else best.verdict.verdict)


def best_candidate(result: CompareResult) -> Candidate | None:
    """The first of the ranking, else the first that was given."""
    ranked = _rank_candidates(result)
    return ranked[0] if ranked else None


def _rank_candidates(result: CompareResult) -> list[Candidate]:
    places = {label: number for number, label in enumerate(result.ranking)}
    return sorted(result.candidates, key=lambda one: places.get(one.label, len(places)))


def _answer(result: CompareResult, best: Candidate | None) -> str:
    if best is None:
        return "Nothing was compared."
    verdict, base = best.verdict, result.base.label
    others = len(result.candidates) - 1
    failed = sum(one.verdict.verdict == "FAILED" for one in result.candidates)
    more = f" {failed} of {len(result.candidates)} candidates failed." if failed and others else ""
    if verdict.verdict == "FAILED":
        return f"{best.label} failed: {verdict.reason}.{more}"
    if verdict.verdict == "IDENTICAL":
        return f"{best.label} is the same model as {base}: {verdict.reason}.{more}"
    if best.speedup is None:
        return f"{best.label} against {base}: {verdict.verdict} ({verdict.reason}).{more}"
    said = f"{best.label} {_times_words(best)} {base} ({_evidence(best)})"
    if best.confirmation is not None and verdict.kept:
        said += ", confirmed on fresh rounds"
    better = "faster" if best.memory is None else "smaller"
    return f"{'' if verdict.kept else f'Nothing is proven {better} than {base}. '}{said}.{more}"


def _gate_words(result: CompareResult) -> str:
    """What the gate says of all candidates; nothing without one."""
    limit = result.fail_if_slower_pct
    if limit is None:
        return ""
    slower = [one.label for one in result.candidates if one.gate == "fail"]
    unknown = [one.label for one in result.candidates if one.gate == "unknown"]
    if slower:
        return f" Slower by more than {limit:g} %: {', '.join(slower)}."
    if unknown:
        return f" It cannot be told whether {', '.join(unknown)} is slower by more than {limit:g} %."
    return f" None is slower by more than {limit:g} %."


def _times_words(candidate: Candidate) -> str:
    assert candidate.speedup is not None
    if candidate.memory is not None:
        return f"takes {1 / candidate.speedup:.2f} times the memory of"
    if speedup_text(candidate.speedup) == "same speed":
        return "is as fast as"
    return f"is {candidate.speedup:.2f} times as fast as"


def _evidence(candidate: Candidate) -> str:
    verdict, bounds = candidate.verdict, candidate.speedup_interval
    clock = "" if verdict.metric is None else f" of {_CLOCKS[verdict.metric]}"
    if bounds is None:
        return verdict.reason
    return f"{bounds[0]:.2f} to {bounds[1]:.2f} at 95 %; {counted(verdict.rounds, 'round')}{clock}"


def _speedups(result: CompareResult) -> tuple[Block, ...]:
    rows = [row for row in rows_of_compare(result) if row.speedup is not None]
    if not rows or any(one.memory is not None for one in result.candidates):
        return ()
    base, shown = result.base.label, rows[:_MOST_DOTS]
    sentence = speedup_sentence(rows, base)
    if len(rows) > len(shown):
        sentence += f" The {len(shown)} best of {len(rows)} candidates are drawn."
    return (Figure("speedups", "Speed", sentence, lambda width: speedup_figure(shown, base, width)),)


def _candidates(result: CompareResult) -> Table:
    rows = [
        _candidate_row(one, marked=number == 0 and one.verdict.kept)
        for number, one in enumerate(_rank_candidates(result))
    ]
    of_memory = any(one.memory is not None for one in result.candidates)
    ratio, saved = ("memory", "memory saved") if of_memory else ("speed", "time saved")
    head = ("candidate", "verdict", ratio, "95 %", saved, "gate", "rounds", "why")
    return table("Candidates", head, rows, numeric=(4, 6))


def _candidate_row(one: Candidate, *, marked: bool) -> Row:
    verdict, gain = one.verdict, one.verdict.gain_pct
    word = f"{verdict.verdict} confirmed" if one.confirmation is not None and verdict.kept else verdict.verdict
    bounds = one.speedup_interval
    cells: tuple[Cell | str, ...] = (
        one.label,
        Cell(word, state=verdict.verdict),
        _ratio_cell(one),
        ""
        if one.speedup is None or bounds is None or one.memory is not None
        else speedup_interval(one.speedup, bounds),
        "" if gain is None else Cell(f"{gain:+.1f} %", sort=gain),
        "" if one.gate is None else Cell(one.gate, state={"pass": "passed", "fail": "failed"}.get(one.gate, "unknown")),
        str(verdict.rounds) if verdict.rounds else "",
        verdict.reason,
    )
    return Row(cells, marked)


def _ratio_cell(one: Candidate) -> Cell | str:
    if one.speedup is None:
        return ""
    if one.memory is None:
        return Cell(speedup_text(one.speedup), sort=one.speedup)
    sizes = (spread_text(side, whole_size) for side in (one.memory.candidate_bytes, one.memory.base_bytes))
    return Cell(f"{speedup_text(one.speedup, SIZES)}: {' against '.join(sizes)}", sort=one.speedup)


def _time_cell(spread: Spread | None) -> Cell | str:
    text = milliseconds(spread)
    return Cell(text, sort=spread.median) if text and spread is not None else text


def round_medians(candidate: Candidate, arm: int, clock: Clock) -> tuple[float, ...]:
    """What a run of an arm took in each round whose gain is reported, in ms; 0 is the base."""
    taken = (candidate.confirmation or candidate).measurement
    if taken is None:
        return ()
    samples = (one.on(clock) for one in taken.rounds if one.arm == arm)
    return tuple(median(found) / NS_PER_MS for found in samples if found)


def _latency(result: CompareResult) -> tuple[Block, ...]:
    """Round medians of every arm; one picture per clock that decided."""
    clocks: dict[Clock, list[Candidate]] = {}
    for one in _rank_candidates(result):
        if one.times is not None and one.times.candidate_ms.median is not None:
            clocks.setdefault(one.times.metric, []).append(one)
    return tuple(
        _latency_figure(result, found, clock, f"latency{'' if number == 0 else f'-{clock}'}")
        for number, (clock, found) in enumerate(clocks.items())
    )


def _latency_figure(result: CompareResult, candidates: Sequence[Candidate], clock: Clock, name: str) -> Figure:
    shown = candidates[:_MOST_DOTS]
    rows = _base_rows(result, shown, clock)
    for one in shown:
        spread = None if one.times is None else one.times.candidate_ms
        if spread is not None and spread.median is not None:
            role, glyph = ROLES.get(one.verdict.verdict, "plain"), GLYPHS.get(one.verdict.verdict, "")
            rows.append(_time_row(one.label, spread, spread.median, round_medians(one, 1, clock), role, glyph))
    ranked = sorted(rows, key=lambda row: row.value)
    word = f"{_CLOCKS[clock][:1].upper()}{_CLOCKS[clock][1:]}"
    sentence = f"{word} of a run, as medians of rounds: {ranked[0].label} {ms(ranked[0].value)}"
    sentence += f", {ranked[-1].label} {ms(ranked[-1].value)}." if len(ranked) > 1 else "."
    if len(candidates) > len(shown):
        sentence += f" The {len(shown)} best of {len(candidates)} candidates are drawn."
    axis = f"ms of {_CLOCKS[clock]} per run"
    return Figure(name, f"{word} per run", sentence, lambda width: dot_figure(rows, axis, sentence, width),
                  _time_table(candidates))  # fmt: skip


def _time_table(candidates: Sequence[Candidate]) -> Table:
    rows = [
        (
            one.label,
            _time_cell(one.times.candidate_ms),
            _time_cell(one.times.base_ms),
            str(one.verdict.rounds),
            Cell(f"{one.verdict.seconds:.1f} s", sort=one.verdict.seconds),
        )
        for one in candidates
        if one.times is not None
    ]
    head = ("candidate", "ms (95 %)", "base ms (95 %)", "rounds", "measured for")
    return table("Times", head, rows, numeric=(3, 4))


def _base_rows(result: CompareResult, candidates: Sequence[Candidate], clock: Clock) -> list[DotRow]:
    """The base in all rounds; its interval is known where it has one partner only."""
    label = f"{result.base.label} (base)"
    spreads = [(one.times.base_ms, one.times.base_ms.median) for one in candidates if one.times is not None]
    known = [(spread, middle) for spread, middle in spreads if middle is not None]
    rounds = tuple(value for one in candidates for value in round_medians(one, 0, clock))
    if len(known) > 1 and rounds:
        middle = median(rounds)
        said = f"{label}: median {middle:.4g} ms of {counted(len(rounds), 'round')} with {len(known)} candidates"
        return [DotRow(label, said, middle, ms(middle), None, rounds)]
    return [_time_row(label, *one, rounds, "main", "") for one in known[:1]]


def _time_row(label: str, spread: Spread, value: float, rounds: tuple[float, ...], role: str, glyph: str) -> DotRow:
    known = None if spread.interval is None else (spread.interval.low, spread.interval.high)
    between = f", 95 % {known[0]:.4g} to {known[1]:.4g} ms" if known else f", no interval: {spread.interval_reason}"
    said = f"{label}: median {value:.4g} ms of {counted(spread.rounds, 'round')}{between}"
    return DotRow(label, said, value, f"{ms(value)} {glyph}".rstrip(), known, rounds, role)


def _agreement(result: CompareResult) -> tuple[Block, ...]:
    """How near the outputs of candidates are to the base's."""
    compared = [(one, one.parity) for one in _rank_candidates(result) if one.parity is not None]
    if not compared:
        return ()
    rows, dots = [], []
    for one, parity in compared:
        state = "within" if parity.within_tolerance else "exceeded"
        for number, output in enumerate(parity.outputs, 1):
            name = one.label if len(parity.outputs) == 1 else f"{one.label}, output {number}"
            rows.append(_distance_row(one.label, number, output, state))
            if output.cosine is not None:
                sign = "✓" if parity.within_tolerance else "✗"
                said = f"{name}: cosine {output.cosine:.6f}, {'near' if parity.within_tolerance else 'too far'}"
                dots.append(DotRow(name, said, output.cosine, f"{output.cosine:.5f} {sign}", None, (),
                                   "good" if parity.within_tolerance else "bad"))  # fmt: skip
    far = [one.label for one, parity in compared if not parity.within_tolerance]
    equal = [one.label for one, parity in compared if parity.outputs and all(o.equal for o in parity.outputs)]
    sentence = _agreement_sentence(result.base.label, len(compared), far, len(equal), [d.value for d in dots])
    head = ("candidate", "output", "cosine", "largest difference", "relative", "same shape", "answer")
    values = table("Outputs", head, rows, numeric=(2, 3, 4))
    if not dots or len(equal) == len(compared):
        return (replace(values, title="Agreement of outputs", note=sentence),)
    shown = sorted(dots, key=lambda row: row.value)[:_MOST_DOTS]
    if len(dots) > len(shown):
        sentence += f" The {len(shown)} of {len(dots)} outputs that agree least are drawn."
    cover = cosine_cover([row.value for row in shown])
    return (
        Figure("agreement", "Agreement of outputs", sentence,
               lambda width: dot_figure(shown, "cosine to the base's output", sentence, width, log=False, cover=cover),
               values),
    )  # fmt: skip


def _agreement_sentence(base: str, count: int, far: Sequence[str], equal: int, cosines: Sequence[float]) -> str:
    if far:
        names = ", ".join(far[:3]) + (f" and {len(far) - 3} more" if len(far) > 3 else "")
        return f"Outputs of {names} are too far from those of {base}."
    if equal == count:
        return f"All outputs equal those of {base}."
    least = f" the least cosine is {min(cosines):.6f}" if cosines else " no cosine is known"
    return f"Outputs agree with those of {base}:{least}."


def _distance_row(label: str, number: int, found: Distance, state: str) -> tuple[Cell | str, ...]:
    return (
        label,
        str(number),
        "unknown" if found.cosine is None else Cell(f"{found.cosine:.6f}", sort=found.cosine),
        "unknown" if found.max_abs is None else Cell(f"{found.max_abs:.4g}", sort=found.max_abs),
        "unknown" if found.relative is None else Cell(f"{found.relative:.4g}", sort=found.relative),
        "yes" if found.same_shape else "no",
        Cell("equal" if found.equal else "near" if state == "within" else "too far", state=state),
    )


def _placements(result: CompareResult) -> tuple[Block, ...]:
    """Arms that did not run where they were to; the others in one line."""
    blocks: list[Block] = []
    arms: list[ComparedArm] = [result.base, *_rank_candidates(result)]
    fine = []
    for arm in arms:
        known = arm.placement
        if known is None:
            continue
        if known.fallback or known.took_nothing:
            for figure in placement_figure(known):
                assert isinstance(figure, Figure)
                name = f"placement-{len(blocks) + 1}"
                blocks.append(replace(figure, name=name, title=f"Where the nodes of {arm.label} ran"))
        else:
            fine.append((arm.label, placement_sentence(known)))
    if fine:
        count = f"{counted(len(fine), 'arm')} ran where asked"
        blocks.append(Facts("Placement", tuple(fine), count))
    return tuple(blocks)


def _conditions(result: CompareResult) -> tuple[Block, ...]:
    rows = []
    for one in _rank_candidates(result):
        seen, other = one.conditions, one.verdict.other_clock
        on_other = ""
        if other.clock is not None and other.gain_pct is not None:
            on_other = f"{other.gain_pct:+.1f} % {_CLOCKS[other.clock]}"
        if seen is None:
            if on_other:
                rows.append((one.label, "", "", "", "", "", on_other))
            continue
        rows.append(
            (
                one.label,
                _format_known(seen.load_max, "{:.1f}"),
                _format_known(seen.base_drift_pct, "{:.1f} %"),
                _format_known(seen.pressure_max_pct, "{:.0f} %"),
                seen.priority or "unknown",
                "yes" if seen.disturbed else "no",
                on_other,
            )
        )
    blocks: list[Block] = []
    if rows:
        loads = [one.conditions.load_max for one in result.candidates if one.conditions and one.conditions.load_max]
        head = ("candidate", "largest load", "drift of the base", "waiting for a CPU", "priority", "disturbed",
                "on the other clock")  # fmt: skip
        folded = f"load was at most {max(loads):.1f}" if loads else "load is not known"
        blocks.append(table("Conditions", head, rows, numeric=(1, 2, 3), folded=folded))
    if result.calibrations:
        pairs = tuple((name[:19], _calibration(one)) for name, one in result.calibrations.items())
        folded = f"A/A rounds: how much the base varies against itself ({len(pairs)})"
        blocks.append(Facts("Calibrations", pairs, folded))
    return tuple(blocks)


def _format_known(value: float | None, form: str) -> str:
    return "unknown" if value is None else form.format(value)


def _calibration(used: Calibration) -> str:
    source = "from the cache" if used.cached else f"measured in {used.seconds:.0f} s"
    spreads = []
    for clock, values in (("CPU time", used.values.cpu), ("wall time", used.values.wall)):
        spread = std(values)
        spreads.append(f"{clock} varies by {'an unknown amount' if spread is None else f'{100 * spread:.2f} %'}")
    return f"{', '.join(spreads)}; {len(used.values.wall)} rounds, {source}"
