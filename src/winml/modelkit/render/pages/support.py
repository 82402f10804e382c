"""The reports of `winml support`: a probe, a contribution, several of them, a review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from winml.modelkit.core.plain_text import command_line
from winml.modelkit.render.figures.checks import Check, check_figure
from winml.modelkit.render.marks import STATES
from winml.modelkit.render.pages.common import model_name, short_ep
from winml.modelkit.render.pages.page import Block, Cell, Facts, Figure, Page, Table, table
from winml.modelkit.render.times import duration
from winml.modelkit.render.units import counted, size

if TYPE_CHECKING:
    from winml.modelkit.support.batch import BatchResult
    from winml.modelkit.support.probe_result import Attempt, ProbeResult
    from winml.modelkit.support.produce import ProduceResult
    from winml.modelkit.support.review.command import NoContribution, ReviewResult, StepAgain
    from winml.modelkit.support.review.contribution import Contribution
    from winml.modelkit.support.review.dossier import Item
    from winml.modelkit.support.review.evidence import Record

_RUNGS = {"L0": "L0 builds", "L1": "L1 measured", "L2": "L2 agrees", "L3": "L3 metric"}
_LONG_RUNGS = {
    "L0": "L0 builds and is structurally right",
    "L1": "L1 is measured on a target",
    "L2": "L2 agrees with its reference",
    "L3": "L3 reaches its task metric",
}
_VERDICTS = {
    "PASS": "passed",
    "FAIL": "failed",
    "TIMEOUT": "timed out",
    "CLI-BLOCKED": "blocked by the tool",
    "HOST-BLOCKED": "blocked by this machine",
    "DEFERRED": "not run",
}
"""What a verdict on a rung says."""
_REVIEWS = {"APPROVE": "Approved", "REQUEST_CHANGES": "Changes are requested", "REJECT": "Rejected"}
_SEVERITIES = {"reject": "REJECT", "changes": "REQUEST_CHANGES"}
_BATCH = {"RUN": "PASS", "BLOCKED-UPSTREAM": "FAIL", "OUT-OF-SCOPE": "DEFERRED"}
"""Status of a model of several -> the state that shows it."""
_NEEDS = {"nothing": "ready", "recipe": "partial", "code": "unsupported", "blocked": "HOST-BLOCKED"}
"""What a model needs -> the state that shows it."""
_MOST_CHECKS = 60
"""Checks that are drawn."""


def _strip(name: str, title: str, sentence: str, checks: Sequence[Check]) -> tuple[Block, ...]:
    if not checks:
        return ()
    if len(checks) > _MOST_CHECKS:
        sentence += f" {_MOST_CHECKS} of {len(checks)} are drawn."
    shown = checks[:_MOST_CHECKS]
    return (Figure(name, title, sentence, lambda width: check_figure(shown, sentence, width)),)


# A review


def review_page(result: ReviewResult | NoContribution) -> Page:
    """Whether a contribution is accepted, the objections to it, and what was run again."""
    blocks: list[Block] = [*_objections(result.items), *_review_strip(result), *_again(result.rerun)]
    if hasattr(result, "contribution"):
        blocks.append(_review_facts(cast("ReviewResult", result)))
    title = f"Review of {model_name(result.folder)}"
    return Page("support", title, _review_answer(result), tuple(blocks), result.verdict)


def _review_answer(result: ReviewResult | NoContribution) -> str:
    word = _REVIEWS[result.verdict]
    if not result.items:
        confirmed = "all of them confirm it" if result.rerun else "nothing was run again"
        return f"{word}: no objection; {counted(len(result.rerun), 'command')} run again, {confirmed}."
    first = next((item for item in result.items if item.severity == "reject"), result.items[0])
    more = f" ({counted(len(result.items) - 1, 'more objection')})" if len(result.items) > 1 else ""
    return f"{word}: {first.check}: {first.reason.rstrip('.')}{more}."


def _objections(items: Sequence[Item]) -> tuple[Block, ...]:
    if not items:
        return ()
    ordered = sorted(items, key=lambda item: item.severity != "reject")
    rows = [(item.check, Cell(item.severity, _SEVERITIES[item.severity]), item.reason) for item in ordered]
    return (table("Objections", ("check", "severity", "why"), rows),)


def _review_strip(result: ReviewResult | NoContribution) -> tuple[Block, ...]:
    """Objections by check, then the commands that were run again, or that none was."""
    counts = Counter(item.check for item in result.items)
    hard = {item.check for item in result.items if item.severity == "reject"}
    checks = []
    for check, count in sorted(counts.items(), key=lambda one: one[0] not in hard):
        style = "bad" if check in hard else "unsure"
        said = counted(count, "objection")
        reasons = "; ".join(item.reason for item in result.items if item.check == check)
        checks.append(Check(check, said, style, f"check `{check}`: {said}: {reasons}"))
    for step in result.rerun:
        said, style = ("confirmed", "good") if not step.contradictions else ("contradicted", "bad")
        checks.append(Check(step.step, said, style, f"{step.step}: {said} in {step.seconds:.1f} s"))
    if not result.rerun:
        checks.append(Check("commands", "not run again", "quiet", "no command was run again"))
    against = sum(bool(step.contradictions) for step in result.rerun)
    sentence = f"{counted(len(counts), 'check')} with objections; "
    sentence += f"{len(result.rerun) - against} of {counted(len(result.rerun), 'command')} run again confirmed it."
    if not result.rerun:
        sentence = f"{counted(len(counts), 'check')} with objections; nothing was run again."
    return _strip("checks", "What was checked", sentence, checks)


def _again(rerun: Sequence[StepAgain]) -> tuple[Block, ...]:
    if not rerun:
        return ()
    rows = [
        (
            step.step,
            Cell("contradicted", "failed") if step.contradictions else Cell("confirmed", "confirmed"),
            "timed out" if step.exit_code is None else str(step.exit_code),
            Cell(duration(step.seconds), sort=step.seconds),
            "; ".join(step.contradictions),
        )
        for step in rerun
    ]
    return (table("Run again", ("command", "result", "exit", "took", "contradictions"), rows, numeric=(2, 3)),)


def _review_facts(result: ReviewResult) -> Facts:
    made, scope, sandbox = result.contribution, result.scope, result.sandbox
    where = "nothing was run again"
    if sandbox is not None:
        where = "none: commands ran without one" if sandbox.kind == "none" else sandbox.kind
    if sandbox is not None and sandbox.limits is not None:
        limits = sandbox.limits
        where += (
            f", at most {size(limits.memory_bytes)} of memory, {limits.processes} processes, {limits.seconds:.0f} s"
        )
    changed = f"not checked: {scope.reason}"
    if scope.files is not None:
        changed = f"since {scope.base}: {', '.join(scope.files) or 'none'}"
    pairs = (
        ("model", made.model),
        ("digest", made.digest),
        ("effort, goal, outcome", f"{made.tiers.effort}, {made.tiers.goal}, {made.tiers.outcome}"),
        ("reached", made.reached or "nothing"),
        ("sandbox", where),
        ("changed files", changed),
        ("folder", result.folder),
    )
    return Facts("Contribution", pairs)


# A contribution


def contribution_page(result: ProduceResult | Contribution, records: Sequence[Record] = ()) -> Page:
    """What was reached of a goal and what shows it; `records` are those of its commands, with their times."""
    if result.schema == "winml/support/1":
        page = contribution_page(result.contribution, records)
        return replace(page, command=f"winml support review {command_line([result.folder])}")
    made = result
    blocks = (
        *_ladder(made),
        *_effect(made),
        *_numbers(made),
        *_records(made, records),
        _contribution_facts(made),
        Facts("Environment", tuple(made.environment.items()), f"winml {made.winml}, made at {made.created}"),
        table("Files", ("file", "digest"), list(made.files.items()), folded=counted(len(made.files), "file")),
    )
    state = "reached" if made.reached == made.tiers.goal else "missed"
    title = f"Support of {model_name(made.model.reference)}"
    return Page("support", title, _contribution_answer(made), blocks, state)


def _contribution_answer(made: Contribution) -> str:
    where = f"is reached on {', '.join(made.targets)} with precision {made.precision}"
    said = f"{made.tiers.goal}, the goal, {where}"
    if made.reached != made.tiers.goal:
        said = f"{made.reached or 'Nothing'} of the goal {made.tiers.goal} {where}"
        stopped = next((rung for rung in made.ladder if rung.verdict != "PASS"), None)
        said += (
            "" if stopped is None else f"; {stopped.rung} {_VERDICTS[stopped.verdict]}: {stopped.reason.rstrip('.')}"
        )
    effect = made.effect
    if effect is not None:
        saved = "" if effect.gain_pct is None else f", {effect.gain_pct:.1f} % less"
        said += f"; against the default: {effect.because}{saved}"
    return f"{said}."


def _ladder(made: Contribution) -> tuple[Block, ...]:
    checks = [
        Check(_RUNGS[rung.rung], _VERDICTS[rung.verdict], STATES[rung.verdict],
              f"{_LONG_RUNGS[rung.rung]}: {_VERDICTS[rung.verdict]}: {rung.reason}")
        for rung in made.ladder
    ]  # fmt: skip
    passed = sum(rung.verdict == "PASS" for rung in made.ladder)
    sentence = f"{passed} of {counted(len(made.ladder), 'rung')} passed; the goal is {made.tiers.goal}."
    rows = [
        (_LONG_RUNGS[rung.rung], Cell(_VERDICTS[rung.verdict], rung.verdict), rung.reason, ", ".join(rung.steps))
        for rung in made.ladder
    ]
    listed = table("", ("rung", "result", "why", "commands"), rows)
    return (*_strip("ladder", "Rungs", sentence, checks), listed)


def _effect(made: Contribution) -> tuple[Block, ...]:
    effect = made.effect
    if effect is None:
        return (Facts("Effect against the default", (("effect", "none was measured"),)),)
    pairs = [("what changed", effect.kind), ("because", effect.because)]
    if effect.gain_pct is not None:
        pairs.append(("less by", f"{effect.gain_pct:.1f} %"))
    return (Facts("Effect against the default", tuple(pairs)),)


def _numbers(made: Contribution) -> tuple[Block, ...]:
    rows = [
        (step, name.replace("_", " "), Cell(f"{value:.6g}", sort=value))
        for step, of in made.numbers.items()
        for name, value in of.items()
    ]
    return (table("Numbers", ("command", "number", "value"), rows, numeric=(2,)),) if rows else ()


def _records(made: Contribution, records: Sequence[Record]) -> tuple[Block, ...]:
    """The commands in their order, with the times that records have."""
    known = {record.id: record for record in records}
    if not known:
        rows: list[tuple[Cell | str, ...]] = [(step,) for step in made.steps]
        return (table("Commands", ("command",), rows, folded=f"{counted(len(rows), 'command')} were run"),)
    rows = []
    for step in made.steps:
        record = known.get(step)
        if record is None:
            rows.append((step, Cell("no record", "unknown"), "", "", ""))
            continue
        rows.append((
            step,
            Cell(_VERDICTS[record.verdict], record.verdict),
            "timed out" if record.exit_code is None else str(record.exit_code),
            Cell(duration(record.seconds), sort=record.seconds),
            record.started,
        ))  # fmt: skip
    head = ("command", "result", "exit", "took", "started")
    total = sum(record.seconds for record in known.values())
    note = f"{counted(len(rows), 'command')} took {duration(total)}."
    # In a table of their own: on a phone the long lines would make all rows tall.
    lines = [(step, f"winml {' '.join(known[step].words)}") for step in made.steps if step in known]
    return (
        table("Evidence", head, rows, numeric=(2, 3), note=note),
        table("", ("command", "as it was run"), lines, folded="the commands as they were run"),
    )


def _contribution_facts(made: Contribution) -> Facts:
    model, probe = made.model, made.probe
    covered = {True: "the exporter covers it", False: "the exporter does not cover it", None: "it is not exported"}
    levels = "; ".join(f"{part} {', '.join(of)}" for part, of in made.levels.items())
    pairs = [
        ("model", model.reference),
        ("digest", model.digest),
        ("family", model.family or "none"),
        ("task", model.task or "none"),
        ("parts", ", ".join(model.parts) or "one"),
        ("effort, goal, outcome", f"{made.tiers.effort}, {made.tiers.goal}, {made.tiers.outcome}"),
        ("recipe", made.recipe or "none"),
        ("least cosine", f"{made.cosine:g}"),
        ("with the defaults", f"{probe.sentence} ({covered[probe.covered]})"),
        ("obstacles", ", ".join(probe.obstacles) or "none"),
        ("artifact levels", levels or "none"),
        ("findings", ", ".join(made.findings) or "none"),
        ("methodology", made.methodology.statement),
    ]
    return Facts("Contribution", tuple(pairs))


# A probe, and several models


def probe_page(result: ProbeResult) -> Page:
    """What a model needs, what was tried and which obstacles it has."""
    model, tried = result.model, (result.build, *result.helps, *result.runs)
    checks = [
        Check(_attempt_name(one), _VERDICTS[one.verdict], STATES[one.verdict],
              f"{_attempt_name(one)}: {_VERDICTS[one.verdict]}{f': {one.message}' if one.message else ''}")
        for one in tried
    ]  # fmt: skip
    passed = sum(one.verdict == "PASS" for one in tried)
    sentence = f"{passed} of {counted(len(tried), 'attempt')} passed."
    facts = (
        ("digest", model.digest),
        ("family", model.family or "none"),
        ("architecture", model.architecture or "none"),
        ("task", model.task or "none"),
        ("parts", ", ".join(model.parts) or "one"),
        ("known", ", ".join((*result.knowledge, *result.recipes)) or "nothing"),
        ("recipe that helps", "none" if result.recipe is None else result.recipe.name),
    )
    blocks = (
        *_strip("attempts", "What was tried", sentence, checks),
        _attempts(tried),
        _obstacles(result),
        Facts("Model", facts),
    )
    answer = f"{model_name(model.reference)} {result.sentence.rstrip('.')}."
    return Page("support", f"Probe of {model_name(model.reference)}", answer, blocks, _NEEDS[result.answer])


def _attempt_name(one: Attempt) -> str:
    where = "" if one.target is None else f" on {one.target}{' (simulated)' if one.simulated else ''}"
    return f"{one.what}{where}"


def _attempts(tried: Iterable[Attempt]) -> Table:
    rows = []
    for one in tried:
        nodes = ", ".join(f"{count} on {short_ep(ep)}" for ep, count in one.nodes.items())
        rows.append((_attempt_name(one), Cell(_VERDICTS[one.verdict], one.verdict), one.message or "", nodes))
    return table("", ("what", "result", "why not", "nodes"), rows)


def _obstacles(result: ProbeResult) -> Table:
    """Those that apply or may apply first; where none does they are folded."""
    words = {True: Cell("yes", "unsupported"), None: Cell("unknown", "unknown"), False: Cell("no", "passed")}
    ordered = sorted(result.obstacles, key=lambda one: (one.applies is False, one.applies is None))
    rows = [(one.name, words[one.applies], one.because) for one in ordered]
    apply = sum(one.applies is not False for one in ordered)
    folded = None if apply else f"none of {counted(len(rows), 'known obstacle')} applies"
    return table("Obstacles", ("obstacle", "applies", "because"), rows, folded=folded)


def batch_page(result: BatchResult) -> Page:
    """Which of several models are supported."""
    counts = Counter(row.status for row in result.models)
    supported = counts["RUN"]
    rows = [
        (model_name(row.model), Cell(row.status, _BATCH[row.status]), row.reached or "", row.reason or "",
         row.folder or "")
        for row in result.models
    ]  # fmt: skip
    checks = [
        Check(model_name(row.model), f"{row.status}{f', {row.reached}' if row.reached else ''}",
              STATES[_BATCH[row.status]], f"{row.model}: {row.status}{f': {row.reason}' if row.reason else ''}")
        for row in result.models
    ]  # fmt: skip
    listed = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    answer = f"{supported} of {counted(len(result.models), 'model')} are supported."
    state = "passed" if supported == len(result.models) else "partial" if supported else "failed"
    blocks = (
        *_strip("models", "Models", f"{listed}." if listed else "none", checks),
        table("", ("model", "status", "reached", "why", "folder"), rows),
    )
    return Page("support", f"Support of {counted(len(result.models), 'model')}", answer, blocks, state)
