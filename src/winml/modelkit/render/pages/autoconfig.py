"""The report of `winml autoconfig`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.environment import Environment
from winml.modelkit.render.autoconfig import (
    BETTER,
    artifact_size,
    champion_costs,
    champion_gain,
    describe_family,
    gain,
    gain_interval,
    model_name,
    no_gain_text,
    quality,
    quality_name,
    rank,
    skipped_groups,
    targets,
    trial_count,
    trial_reason,
    trial_state,
)
from winml.modelkit.render.figures.course import MOST_STEPS, Step, bundle, course_figure
from winml.modelkit.render.figures.dots import DotRow, dot_figure
from winml.modelkit.render.figures.gains import (
    GAINS,
    gain_bounds,
    gain_value,
    is_less_better,
    is_timed,
    quality_points,
    size_points,
)
from winml.modelkit.render.figures.pareto import Point, front, pareto_figure
from winml.modelkit.render.figures.style import STATE_GLYPHS, STATE_ROLES
from winml.modelkit.render.marks import STATES
from winml.modelkit.render.pages.common import environment_facts, notices
from winml.modelkit.render.pages.page import Block, Cell, Facts, Figure, Group, Page, Row, Table, Text, table
from winml.modelkit.render.times import duration, median_ms
from winml.modelkit.render.units import counted, size_unit

if TYPE_CHECKING:
    from winml.modelkit.search.result import Champion, SearchResult, TrialResult
    from winml.modelkit.search.trial import Note

_SHOWN = 20
"""Trials that are drawn and listed before the others are folded."""
_MOST_POINTS = 200
"""Configs of a front that are drawn."""
_PROVEN = frozenset({"kept", "confirmed"})


def autoconfig_page(result: SearchResult, rounds: Mapping[str, Sequence[float]] = MappingProxyType({})) -> Page:
    """Which config is best, what it changes, what else was tried and why it ended.

    `rounds` is how many times as fast as the baseline a trial was in each round; the journal of a search has it.
    """
    best = result.champion
    return Page(
        "autoconfig",
        f"{model_name(result)} on {targets(result)}",
        _answer(result),
        (
            *notices([note for note in result.notes if note != result.gate.words], "note"),
            *_champion(best),
            *_trials_figure(result, rounds),
            *_front_figure(result),
            *_size_figure(result),
            *_course_figure(result),
            *_trial_tables(result),
            *_reasons(result),
            _facts(result),
            *_skipped_settings(result),
            *_reordered_settings(result.insight),
            *_environment(result),
        ),
        "undecided" if best is None else "confirmed" if best.status == "KEEP_CONFIRMED" else "no gain",
        result.next,
    )


# The answer


def _answer(result: SearchResult) -> str:
    best = result.champion
    if best is None:
        lead = next((t for t in _rank_trials(result) if t.state in _PROVEN), None)
        so_far = "" if lead is None else f"; the best so far is {lead.id}, {_gain_text(lead)}, which is not confirmed"
        return f"No champion: the search is not finished{so_far}."
    if best.status == "BASELINE_IS_BEST":
        return _sentence(no_gain_text(result))
    return f"{best.trial.id} is {'; '.join([champion_gain(result, best), *champion_costs(result, best.trial)])}."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _gain_text(trial: TrialResult) -> str:
    verdict = trial.deciding_verdict
    return " ".join(filter(None, (gain(verdict), gain_interval(verdict))))


def _champion(best: Champion | None) -> tuple[Block, ...]:
    """What the champion changes; nothing where the baseline stays."""
    if best is None or best.status == "BASELINE_IS_BEST":
        return ()
    trial, blocks = best.trial, []
    why = {(note.knob, note.level): f"{note.reason} ({note.source})" for note in trial.because}
    rows = [(knob, level, why.get((knob, level), "")) for knob, level in trial.choice.items()]
    if rows:
        blocks.append(table(f"What {trial.id} changes", ("setting", "level", "why it was tried"), rows))
    pairs = [*_flatten(trial.changes), ("folder", best.folder or ""), ("digest", best.digest or "")]
    known = tuple((name, value) for name, value in pairs if value)
    folded = Facts("", known, "the same in the config, and where it is")
    return (*blocks, folded) if known else tuple(blocks)


def _flatten(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Nested settings as names with dots."""
    if not isinstance(value, Mapping):
        return [(name, "none" if value is None else str(value))]
    return [pair for key, item in value.items() for pair in _flatten(item, f"{name}.{key}" if name else key)]


# Pictures


def _rank_trials(result: SearchResult) -> list[TrialResult]:
    """Trials without the baseline, the best first."""
    return sorted((t for t in result.trials if t.outcome != "baseline"), key=lambda trial: -rank(trial))


def _trials_figure(result: SearchResult, rounds: Mapping[str, Sequence[float]]) -> tuple[Block, ...]:
    measured = [t for t in _rank_trials(result) if t.deciding_verdict is not None and gain_value(result, t) is not None]
    rows = [_dot(result, trial, rounds.get(trial.id, ())) for trial in measured[:_SHOWN]]
    if not rows:
        return ()
    sentence = _trials_sentence(result, measured)
    if any(len(row.values) > 1 for row in rows):
        sentence += (
            " Small dots are rounds of the race; a config that won it was measured again, which is the large one."
        )
    line = (1.0, "same speed") if is_timed(result) else (0.0, "as the baseline")
    axis = GAINS[result.objective].removesuffix(", logarithmic")

    def draw(width: float) -> str:
        return dot_figure(rows, axis, sentence, width, line=line, log=is_timed(result), most_label=300.0)

    return (Figure("trials", "What every config gains", sentence, draw),)


def _dot(result: SearchResult, trial: TrialResult, rounds: Sequence[float]) -> DotRow:
    value, style = gain_value(result, trial), STATES[trial.state]
    assert value is not None
    taken = f", {counted(trial.rounds, 'round')}" if trial.rounds > 1 else ""
    return DotRow(
        f"{trial.id}  {_short(trial)}",
        f"{trial.id} {trial.label}: {_gain_text(trial)}, {trial.state}{taken}",
        value,
        f"{gain(trial.deciding_verdict)} {STATE_GLYPHS[style]}",
        gain_bounds(result, trial),
        tuple(rounds),
        STATE_ROLES[style],
        result.champion is not None and trial.id == result.champion.trial.id,
    )


def _short(trial: TrialResult) -> str:
    """A config without the sections of its settings."""
    return ", ".join(f"{knob.rpartition('.')[2]}={level}" for knob, level in trial.choice.items()) or trial.label


def _trials_sentence(result: SearchResult, measured: Sequence[TrialResult]) -> str:
    better = BETTER[result.objective]
    proven = [trial for trial in measured if trial.state in _PROVEN]
    if proven:
        verb = "is" if len(proven) == 1 else "are"
        first = f"{len(proven)} of {counted(len(measured), 'measured config')} {verb} proven {better}"
        said = [f"{first}, {proven[0].id} most: {_gain_text(proven[0])}."]
    else:
        said = [f"None of {counted(len(measured), 'measured config')} is proven {better}."]
    known = {trial.id for trial in measured}
    others = Counter(t.state for t in result.trials if t.outcome != "baseline" and t.id not in known)
    if others:
        listed = ", ".join(f"{count} {state}" for state, count in others.most_common())
        said.append(f"{others.total()} more without a number: {listed}.")
    if len(measured) > _SHOWN:
        said.append(f"The best {_SHOWN} are drawn.")
    return " ".join(said)


def _front_figure(result: SearchResult) -> tuple[Block, ...]:
    name = quality_name(result)
    return _front(
        result, "front", f"Gain and {name}", name, quality_points(result), without=f"gain and {name}",
        less_is_better=is_less_better(result),
    )  # fmt: skip


def _size_figure(result: SearchResult) -> tuple[Block, ...]:
    """Gain and size; nothing in a search for small artifacts, where both are the same."""
    sizes = [trial.artifact.bytes for trial in result.trials if trial.artifact is not None]
    if result.objective == "size" or not any(sizes):
        return ()
    unit, word = size_unit(max(sizes))
    return _front(
        result, "size-front", "Gain and size", f"size, {word}", size_points(result, unit),
        without="gain and size", less_is_better=True,
    )  # fmt: skip


def _front(
    result: SearchResult,
    name: str,
    title: str,
    upwards: str,
    points: list[Point],
    *,
    without: str,
    less_is_better: bool = False,
) -> tuple[Block, ...]:
    """A picture of two numbers of every config; nothing where all are alike in what a gain may cost."""
    if len({point.y for point in points}) < 2:
        return ()
    best = front(points, less_is_better=less_is_better)
    names = [point.name for point in best]
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    if len(best) == 1:
        said = [f"{listed} is at least as good as every other config in {without}."]
    else:
        said = [f"{len(best)} of {len(points)} configs are beaten by no other in {without} at once: {listed}."]
    marked = [point for point in points if point.marked and point.name not in names]
    if marked:
        said.append(f"The champion {marked[0].name} is the best of those whose gain is proven.")
    if any(point.x_interval or point.y_interval for point in points):
        said.append("Thin lines are 95 % intervals.")
    if len(points) > _MOST_POINTS:
        said.append(f"{_MOST_POINTS} of {len(points)} configs are drawn.")
        on_front = set(names)
        points = [*best, *(point for point in points if point.name not in on_front)][:_MOST_POINTS]
    across, timed = GAINS[result.objective], is_timed(result)

    def draw(width: float) -> str:
        return pareto_figure(points, across, upwards, width, log=timed, less_is_better=less_is_better)

    return (Figure(name, title, " ".join(said), draw),)


def _course_figure(result: SearchResult) -> tuple[Block, ...]:
    if not result.trials:
        return ()
    time = result.time
    said = f"preparation: {time.preparation_s:.1f} s"
    steps = [Step("preparation", said, time.preparation_s, "quiet", "preparation")]
    steps += [_step(result, trial) for trial in result.trials]
    rest = result.seconds - sum(step.seconds for step in steps)
    if rest > 0.05:
        said = f"further rounds of the best and their confirmation: {rest:.1f} s, drawn at the end"
        steps.append(Step("confirmation", said, rest, "quiet", "confirmation"))
    sentence = _course_sentence(result, steps)
    base, timed = (1.0, True) if is_timed(result) else (0.0, False)
    axis = GAINS[result.objective].removesuffix(", logarithmic")

    def draw(width: float) -> str:
        return course_figure(steps, base, axis, sentence, width, log=timed)

    return (Figure("course", "The course of the search", sentence, draw, _course_values(result, steps)),)


def _course_values(result: SearchResult, steps: Sequence[Step]) -> Table:
    """What is drawn, as numbers."""
    rows: list[tuple[Cell | str, ...]] = []
    ended = 0.0
    for step in bundle(steps):
        ended += step.seconds
        gained = "" if step.value is None else f"{step.value:.2f}x" if is_timed(result) else f"{step.value:+.1f} %"
        rows.append((step.label, Cell(step.state, step.state), f"{step.seconds:.1f}", f"{ended:.1f}",
                     Cell(gained, sort=step.value)))  # fmt: skip
    return table("Course", ("what", "state", "seconds", "ended after", "gain"), rows, numeric=(2, 3, 4))


def _step(result: SearchResult, trial: TrialResult) -> Step:
    reused = trial.reused_from is not None
    seconds = 0.0 if reused else trial.seconds
    took = "taken from an earlier search" if reused else f"{seconds:.1f} s"
    words = ", ".join(filter(None, (trial_state(trial), _gain_text(trial), took)))
    value = None if trial.deciding_verdict is None else gain_value(result, trial)
    return Step(
        trial.id,
        f"{trial.id} {trial.label}: {words}",
        seconds,
        STATES[trial.state],
        trial.state,
        value,
        trial.state in _PROVEN,
    )


def _course_sentence(result: SearchResult, steps: Sequence[Step]) -> str:
    tried = sum(trial.outcome != "baseline" for trial in result.trials)
    said = [f"{counted(tried, 'config')} in {duration(result.seconds)}"]
    proven = [step for step in steps if step.proven and step.value is not None]
    if proven:
        best = max(proven, key=lambda step: step.value or 0.0)
        until = sum(step.seconds for step in steps[: steps.index(best) + 1])
        said.append(f"; {best.label} led from {duration(until)} on")
    said.append(f". {'Why it ended' if result.finished else 'It has not ended'}: {result.ended}.")
    if len(steps) > MOST_STEPS:
        said.append(f" Neighbours of {len(steps)} steps are drawn as one.")
    return "".join(said)


# Tables


def _trial_tables(result: SearchResult) -> tuple[Block, ...]:
    baseline = [trial for trial in result.trials if trial.outcome == "baseline"]
    ranked = _rank_trials(result)
    # The baseline stands where its gain, which is none, puts it.
    place = next((i for i, trial in enumerate(ranked) if rank(trial) < 0), len(ranked))
    ordered = [*ranked[:place], *baseline, *ranked[place:]]
    if not ordered:
        return ()
    first = _trial_table(result, "Trials", ordered[:_SHOWN], None)
    more = ordered[_SHOWN:]
    return (first, _trial_table(result, "", more, f"{counted(len(more), 'more trial')}")) if more else (first,)


def _trial_table(result: SearchResult, title: str, trials: Sequence[TrialResult], folded: str | None) -> Table:
    champion = None if result.champion is None else result.champion.trial.id
    head = ("trial", "state", "config", "speed" if is_timed(result) else "saved", "ms", "rounds",
            quality_name(result), "size")  # fmt: skip
    rows = []
    for trial in trials:
        known = trial.accuracy
        cells = (
            Cell(trial.id, sort=float(trial.id[1:])),
            Cell(trial_state(trial), trial.state),
            trial.label,
            Cell(_gain_text(trial), sort=gain_value(result, trial)),
            "" if trial.times is None else median_ms(trial.times.candidate_ms).removesuffix(" ms"),
            str(trial.rounds) if trial.rounds and is_timed(result) else "",
            Cell(quality(known), sort=None if known is None else known.value),
            Cell(artifact_size(trial), sort=None if trial.artifact is None else float(trial.artifact.bytes)),
        )
        rows.append(Row(cells, trial.id == champion))
    note = None
    if title and result.pareto:
        listed = ", ".join(result.pareto)
        note = f"Beaten by no other in gain, {quality_name(result)} and size at once: {listed}."
    return table(title, head, rows, numeric=(4, 5, 6, 7), folded=folded, note=note)


def _reasons(result: SearchResult) -> tuple[Block, ...]:
    rows = [
        (trial.id, Cell(trial_state(trial), trial.state), trial.label, trial_reason(trial))
        for trial in result.trials
        if trial_reason(trial)
    ]
    if not rows:
        return ()
    folded = f"why {len(rows)} trials ended so" if len(rows) > _SHOWN else None
    return (table("Reasons", ("trial", "state", "config", "why"), rows, folded=folded),)


def _facts(result: SearchResult) -> Facts:
    gate = "accuracy gate" if result.gate.limits.kind == "task" else "agreement gate"
    time = result.time
    budget = "no budget" if time.budget_s is None else f"a budget of {duration(time.budget_s)}"
    taken = f"{duration(result.seconds)} with {budget}, {time.preparation_s:.1f} s of it to prepare"
    if time.delivery_s is not None:
        taken += f"; {time.delivery_s:.1f} s more to deliver the champion"
    pairs = [
        ("model", result.model),
        ("digest", result.model_digest),
        ("target", targets(result)),
        ("searched for", result.objective),
        *([] if result.family is None else [("family", describe_family(result))]),
        (gate, result.gate.words),
        ("trials", trial_count(result)),
        ("time", taken),
        ("ended", result.ended),
    ]
    if result.drafts:
        pairs.append(("draft findings", ", ".join(result.drafts)))
    if result.node is not None:
        pairs.append(("node", result.node))
    return Facts("Search", tuple(pairs))


def _skipped_settings(result: SearchResult) -> tuple[Block, ...]:
    """Settings that were not tried, folded by reason; the rare reasons, which say most, come first."""
    groups = skipped_groups(result.insight, result.objective)
    if not groups:
        return ()
    tables = []
    for why, notes in groups:
        counts = Counter(note.reason for note in notes)
        ordered = sorted(notes, key=lambda note: counts[note.reason])
        rows = [(f"{note.knob}={note.level}", note.source, note.reason) for note in ordered]
        folded = f"{counted(len(notes), 'setting')} {why}"
        tables.append(table("", ("setting", "by", "why"), rows, folded=folded))
    total = sum(len(notes) for _, notes in groups)
    return (Group("Skipped settings", (Text(f"{counted(total, 'setting')} had no chance and took no time."), *tables)),)


def _reordered_settings(notes: Sequence[Note]) -> tuple[Block, ...]:
    rows = [(f"{note.knob}={note.level}", note.kind, note.source, note.reason) for note in notes if not note.excludes]
    if not rows:
        return ()
    folded = f"{counted(len(rows), 'setting')} moved to another place in the order"
    return (table("Reordered settings", ("setting", "kind", "by", "why"), rows, folded=folded),)


def _environment(result: SearchResult) -> tuple[Block, ...]:
    """Nothing for a search that measured nothing yet."""
    return (environment_facts(result.environment),) if isinstance(result.environment, Environment) else ()
