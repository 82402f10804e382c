"""The report of `winml eval`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.dots import DotRow, dot_figure
from winml.modelkit.render.figures.shares import Share, share_figure
from winml.modelkit.render.pages.common import cosine_cover, environment_facts, model_name, notices, placement_blocks
from winml.modelkit.render.pages.page import Block, Cell, Facts, Figure, Page, Table, slug, table
from winml.modelkit.render.units import CORRELATIONS, PLAIN_METRICS, counted

if TYPE_CHECKING:
    from winml.modelkit.evaluation.checks import Check
    from winml.modelkit.evaluation.distance_report import OutputDistance
    from winml.modelkit.evaluation.metrics import Estimate, MetricEstimate
    from winml.modelkit.evaluation.result import EvalResult, EvaluatedModel

_MOST_OUTPUTS = 30
_MOST_CLASSES = 20
_WORST = ("exceeded", "inconclusive", "within")
_QUESTIONS = {
    "min-metric": "at least",
    "max-metric": "at most",
    "max-drop": "dropped by at most",
    "min-agreement": "at least",
}
_ANSWERS = {"within": "held", "exceeded": "not held", "inconclusive": "open: the samples do not decide it"}
_LOOKS = {"within": ("good", " ✓"), "exceeded": ("bad", " ✗"), "inconclusive": ("open", " ~")}


def evaluate_page(result: EvalResult) -> Page:
    """How right a model is, how sure that is, and how far it is from its reference."""
    blocks = (
        *notices(result.warnings),
        *_limits(result),
        *_metrics(result),
        *_drops(result),
        *_answers(result),
        *_together(result),
        *_agreement(result),
        *_classes(result),
        *placement_blocks(result.placement),
        *notices(result.notes, "note"),
        _facts(result),
        environment_facts(result.environment),
    )
    return Page("eval", f"{_where(result)}: {result.task}", _answer(result), blocks, _state(result))


def _where(side: EvaluatedModel) -> str:
    return f"{model_name(side.model)} on {side.target}"


def _state(result: EvalResult) -> str | None:
    """The answer of the worst check; without one, only that a simulator ran."""
    answers = {check.answer for check in result.checks}
    worst = next((answer for answer in _WORST if answer in answers), None)
    return worst or ("simulated" if result.simulated else None)


@dataclass(frozen=True)
class _Form:
    """How a metric is written: a fraction in percent, anything else as it is."""

    fraction: bool
    figure: str = ""
    """Metrics of one scale share a picture: the end of its name."""
    axis: str = "%"

    @property
    def factor(self) -> float:
        return 100.0 if self.fraction else 1.0

    def number(self, value: float, sign: str = "") -> str:
        return f"{100 * value:{sign}.2f}" if self.fraction else f"{value:{sign}.4f}"

    def text(self, found: Estimate | None, unit: str = " %") -> str:
        """`99.40 % (98.25 to 99.80 at 95 %)`, or why there is none."""
        if found is None:
            return "unknown"
        if found.value is None:
            return f"unknown: {found.reason}"
        value, known = f"{self.number(found.value)}{unit if self.fraction else ''}", found.interval
        if known is None:
            return f"{value} (no interval: {found.reason})"
        return f"{value} ({self.number(known.low)} to {self.number(known.high)} at {100 * known.level:.0f} %)"

    def drop_words(self, drop: Estimate) -> str:
        """`0.20 points worse than the reference (-0.34 to 0.89 at 90 %)`."""
        value, known = drop.value or 0.0, drop.interval
        if value == 0:
            return "the same as the reference's"
        between = ""
        if known is not None:
            low, high = (known.low, known.high) if value > 0 else (-known.high, -known.low)
            between = f" ({self.number(low)} to {self.number(high)} at {100 * known.level:.0f} %)"
        unit = " points" if self.fraction else ""
        word = "worse" if value > 0 else "better"
        return f"{self.number(abs(value))}{unit} {word} than the reference{between}"


def _form(result: EvalResult, metric: str) -> _Form:
    found = result.find_metric(metric)
    if found is None or found.kind not in PLAIN_METRICS:
        return _Form(True)
    if found.kind in CORRELATIONS:
        return _Form(False, "-correlations", "correlation")
    return _Form(False, f"-{slug(metric)}", metric)


def _by_scale(result: EvalResult, names: Iterable[str]) -> dict[str, list[str]]:
    """Metrics that can share a picture, fractions first."""
    groups: dict[str, list[str]] = {"": []}
    for name in names:
        groups.setdefault(_form(result, name).figure, []).append(name)
    return {suffix: members for suffix, members in groups.items() if members}


def _answer(result: EvalResult) -> str:
    count, whole = result.samples.n, result.data.samples
    samples = counted(count, "sample") if count == whole else f"{count} of {counted(whole, 'sample')}"
    name = result.metric if result.metric in result.metrics else next(iter(result.metrics), None)
    if name is not None:
        form = _form(result, name)
        said = f"{name} is {form.text(result.metrics[name])} on {samples}"
        drop = (result.drop or {}).get(name)
        if drop is not None and drop.value is not None:
            said += f", {form.drop_words(drop)}"
    elif result.distance:
        least = least_median(result.distance)
        known = "unknown" if least is None else f"{least:.6f}"
        said = f"The least median cosine of an output to the reference's is {known} on {samples}"
    else:
        said = f"The model ran over {samples}"
    return " ".join([f"{said}.", *(_check_words(check, result) for check in result.checks)])


def least_median(distance: Sequence[OutputDistance] | None) -> float | None:
    """The median cosine of the output that agrees least; None when one is not known."""
    medians = [None if one.cosine is None else one.cosine.median for one in distance or ()]
    known = [value for value in medians if value is not None]
    return min(known) if known and len(known) == len(medians) else None


def _limit(check: Check, result: EvalResult) -> str:
    if check.check == "min-agreement" or not _form(result, check.metric).fraction:
        return f"{check.limit:g}"
    return f"{100 * check.limit:g} {'points' if check.check == 'max-drop' else '%'}"


def _question(check: Check, result: EvalResult) -> str:
    name = "agreement (median cosine)" if check.check == "min-agreement" else check.metric
    return f"{name} {_QUESTIONS[check.check]} {_limit(check, result)}"


def _check_words(check: Check, result: EvalResult) -> str:
    needed = "" if check.needed is None else f"; about {check.needed:,} samples would"
    return f"{_question(check, result)}: {_ANSWERS[check.answer]}{needed}."


def _limits(result: EvalResult) -> tuple[Block, ...]:
    rows = []
    for check in result.checks:
        form = _form(result, check.metric)
        if check.check == "min-agreement":
            least = least_median(result.distance)
            found = "unknown" if least is None else f"{least:.6f}"
        elif check.check == "max-drop":
            found = form.text((result.drop or {}).get(check.metric), " points")
        else:
            found = form.text(result.find_metric(check.metric))
        needed = "" if check.needed is None else f"{check.needed:,} samples"
        answer = Cell(check.answer, state=check.answer)
        rows.append((_question(check, result), found, answer, f"the {check.by}", needed))
    return (table("Limits", ("limit", "found", "answer", "judged by", "would decide"), rows),) if rows else ()


def _metrics(result: EvalResult) -> tuple[Block, ...]:
    """Metrics in percent, then those on other scales; a metric with a limit has a picture with that line."""
    limits = {check.metric: check for check in result.checks if check.check in ("min-metric", "max-metric")}
    known = [name for name, found in result.metrics.items() if found.value is not None]
    figures: list[Block] = [_metric_figure(result, [name], f"metric-{slug(name)}", limits[name])
                            for name in known if name in limits]  # fmt: skip
    for suffix, names in _by_scale(result, (name for name in known if name not in limits)).items():
        figures.append(_metric_figure(result, names, f"metrics{suffix}", None))
    unknown = tuple((name, f"unknown: {one.reason}") for name, one in result.metrics.items() if one.value is None)
    return (*figures, *((Facts("Metrics without a value", unknown),) if unknown else ()))


def _metric_figure(result: EvalResult, names: Sequence[str], figure: str, check: Check | None) -> Figure:
    form, reference = _form(result, names[0]), result.reference
    rows = []
    for name in names:
        rows += _metric_rows(name, result, form, name, "main")
        if reference is not None:
            rows += _metric_rows(name, reference, form, f"{name}, reference", "plain")
    sentence = f"{names[0]} is {form.text(result.metrics[names[0]])}"
    if reference is not None:
        sentence += f"; the reference has {form.text(reference.metrics.get(names[0]))}"
    sentence += "."
    axis = f"{form.axis}, with intervals"
    line = None
    if check is not None:
        line = (form.factor * check.limit, f"{_QUESTIONS[check.check]} {_limit(check, result)}")
    title = "Metrics" if len(names) > 1 else names[0]
    return Figure(figure, title, sentence,
                  lambda width: dot_figure(rows, axis, sentence, width, line=line, log=False),
                  _metric_table(result, names))  # fmt: skip


def _metric_rows(name: str, side: EvaluatedModel, form: _Form, label: str, role: str) -> list[DotRow]:
    found = side.metrics.get(name)
    if found is None or found.value is None:
        return []
    text = f"{form.number(found.value)}{' %' if form.fraction else ''}"
    said = f"{label}, {_where(side)}: {form.text(found)}"
    return [DotRow(label, said, form.factor * found.value, text, _interval(found, form), (), role)]


def _interval(found: Estimate, form: _Form) -> tuple[float, float] | None:
    known = found.interval
    return None if known is None else (form.factor * known.low, form.factor * known.high)


def _metric_table(result: EvalResult, names: Sequence[str]) -> Table:
    reference, rows = result.reference, []
    for name in names:
        form, found, drop = _form(result, name), result.metrics[name], (result.drop or {}).get(name)
        other = "" if reference is None else form.text(reference.metrics.get(name))
        dropped = "" if drop is None else form.text(drop, " points")
        rows.append((name, form.text(found), other, dropped, str(found.n), found.method))
    return table("Metrics", ("metric", "model", "reference", "drop", "samples", "interval by"), rows, numeric=(4,))


def _drops(result: EvalResult) -> tuple[Block, ...]:
    """By how much metrics are worse than the reference's; one with a limit has a picture with that line."""
    limits = {check.metric: check for check in result.checks if check.check == "max-drop"}
    known = {name: drop for name, drop in (result.drop or {}).items() if drop.value is not None}
    figures: list[Block] = [_drop_figure(result, {name: drop}, f"drop-{slug(name)}", limits[name])
                            for name, drop in known.items() if name in limits]  # fmt: skip
    for suffix, names in _by_scale(result, (name for name in known if name not in limits)).items():
        figures.append(_drop_figure(result, {name: known[name] for name in names}, f"drop{suffix}", None))
    return tuple(figures)


def _drop_figure(result: EvalResult, drops: Mapping[str, MetricEstimate], figure: str, check: Check | None) -> Figure:
    first, drop = next(iter(drops.items()))
    form = _form(result, first)
    role, sign = ("main", "") if check is None else _LOOKS[check.answer]
    rows = []
    for name, one in drops.items():
        value = one.value or 0.0
        said = f"{name}: worse by {form.text(one, ' points')}"
        text = f"{form.number(value, '+')}{sign}"
        rows.append(DotRow(name, said, form.factor * value, text, _interval(one, form), (), role))
    sentence = f"{first} is {form.drop_words(drop)}."
    line = (0.0, "like the reference")
    if check is not None:
        line = (form.factor * check.limit, f"limit {_limit(check, result)}")
        sentence += f" The limit of {_limit(check, result)} is {_ANSWERS[check.answer]}, judged by the {check.by}."
    axis = "points worse than the reference" if form.fraction else "worse than the reference"
    title = "Drop" if len(drops) > 1 else f"Drop of {first}"
    return Figure(figure, title, sentence,
                  lambda width: dot_figure(rows, axis, sentence, width, line=line, log=False))  # fmt: skip


def _answers(result: EvalResult) -> tuple[Block, ...]:
    """Answers of both models beside each other, where every answer is right or wrong."""
    drop = (result.drop or {}).get(result.metric or "")
    found = result.metrics.get(result.metric or "")
    if drop is None or found is None or drop.worse is None or drop.better is None or found.value is None:
        return ()
    right = round(found.value * drop.n)
    counts = (
        ("both right", right - drop.better, "good", "✓"),
        ("only the reference right", drop.worse, "bad", "✗"),
        ("only the model right", drop.better, "main", "●"),
        ("both wrong", drop.n - right - drop.worse, "plain", "○"),
    )
    # The drop is about the samples that both ran; a model that ran more of them has another number of right answers.
    if found.n != drop.n or any(count < 0 for _, count, _, _ in counts):
        return ()
    shares = [
        Share(label, f"{label}: {count} of {drop.n} samples", count, f"{count:,} ({100 * count / drop.n:.1f} %)", role,
              glyph)
        for label, count, role, glyph in counts
    ]  # fmt: skip
    changed = drop.worse + drop.better
    sentence = f"None of {drop.n} answers changed between right and wrong ({result.metric})."
    if changed:
        sentence = f"{changed} of {drop.n} answers changed ({result.metric})"
        sentence += f": {drop.worse} to wrong and {drop.better} to right."
    return (Figure("answers", "Answers", sentence, lambda width: share_figure(shares, sentence, width)),)


def _together(result: EvalResult) -> tuple[Block, ...]:
    """Numbers about the model and its reference together, of models that generate text."""
    rows = [
        (name, _form(result, name).text(found), str(found.n), found.method)
        for name, found in (result.comparison or {}).items()
    ]
    head = ("beside the reference", "value", "samples", "interval by")
    return (table("Generated text beside the reference", head, rows, numeric=(2,)),) if rows else ()


def _agreement(result: EvalResult) -> tuple[Block, ...]:
    """How near every output is to the reference's: the median run, and the worst."""
    if not result.distance:
        return ()
    title, values = "Agreement with the reference", _distance_table(result.distance)
    same = (
        "" if result.agreement is None else f" Both answer alike for {_Form(True).text(result.agreement)} of samples."
    )
    known = sorted(
        ((one, one.cosine) for one in result.distance if one.cosine is not None), key=lambda one: one[1].median
    )
    if not known:
        return (replace(values, title=title, note=f"No output can be compared with the reference's.{same}"),)
    rows = []
    for one, cosine in known[:_MOST_OUTPUTS]:
        said = (
            f"{one.output}: cosine {cosine.median:.6f} in the median run, {cosine.min:.6f} in the worst of {one.runs}; "
            f"{one.equal} runs are equal"
        )
        rows.append(DotRow(one.output, said, cosine.median, f"{cosine.median:.6f}", None, (cosine.min,)))
    worst, cosine = known[0]
    sentence = (
        f"{worst.output} has a cosine of {cosine.median:.6f} to the reference's in the median run and {cosine.min:.6f} "
        f"in the worst.{same}"
    )
    if len(known) > len(rows):
        sentence += f" The {len(rows)} of {len(known)} outputs that agree least are drawn."
    check = next((one for one in result.checks if one.check == "min-agreement"), None)
    line = None if check is None else (check.limit, f"at least {check.limit:g}")
    axis, cover = "cosine; large dot: median, small dot: worst run", cosine_cover([row.values[0] for row in rows])
    return (
        Figure("agreement", title, sentence,
               lambda width: dot_figure(rows, axis, sentence, width, line=line, log=False, cover=cover), values),
    )  # fmt: skip


def _distance_table(distance: Sequence[OutputDistance]) -> Table:
    rows = [
        (
            one.output,
            *(("unknown", "") if one.cosine is None
              else (_cell(one.cosine.median, ".6f"), _cell(one.cosine.min, ".6f"))),
            *(("unknown", "") if one.max_abs is None
              else (_cell(one.max_abs.median, ".3g"), _cell(one.max_abs.max, ".3g"))),
            *(("", "") if one.sqnr_db is None else (_cell(one.sqnr_db.median, ".1f"), _cell(one.sqnr_db.min, ".1f"))),
            f"{one.equal} of {one.runs}",
            str(one.incomparable) if one.incomparable else "",
        )
        for one in distance
    ]  # fmt: skip
    head = ("output", "median cosine", "least cosine", "median difference", "largest difference", "median SQNR dB",
            "least SQNR dB", "equal runs", "not comparable")  # fmt: skip
    return table("Outputs", head, rows, numeric=range(1, 9))


def _cell(value: float, form: str) -> Cell:
    return Cell(format(value, form), sort=value)


def class_overlaps(series: Sequence[Any] | str | None) -> dict[str, float]:
    """Shared pixels over pixels that either side gives a class, by class; empty for a series of another form."""
    if series is None or isinstance(series, str):
        return {}
    sums: dict[str, list[float]] = {}
    for record in series:
        if not isinstance(record, Mapping):
            return {}
        for name, pair in record.items():
            if not _is_pair(pair):
                return {}
            total = sums.setdefault(str(name), [0.0, 0.0])
            total[0] += pair[0]
            total[1] += pair[1]
    return {name: shared / either for name, (shared, either) in sums.items() if either}


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(one, int | float) for one in value)


def _classes(result: EvalResult) -> tuple[Block, ...]:
    """The overlap of every class, where a metric is a mean over classes."""
    if all(one.kind != "mean_iou" for one in result.metrics.values()):
        return ()
    reference = result.samples.reference
    mine = class_overlaps(result.samples.candidate.series.get("overlap"))
    theirs = {} if reference is None else class_overlaps(reference.series.get("overlap"))
    if len(mine) < 2:
        return ()
    ranked = sorted(mine.items(), key=lambda one: (one[1], one[0]))
    rows = []
    for name, value in ranked[:_MOST_CLASSES]:
        compared = f", reference {100 * theirs[name]:.2f} %" if name in theirs else ""
        against = (100 * theirs[name],) if name in theirs else ()
        rows.append(DotRow(f"class {name}", f"class {name}: {100 * value:.2f} %{compared}", 100 * value,
                           f"{100 * value:.1f} %", None, against))  # fmt: skip
    (low, least), (high, most) = ranked[0], ranked[-1]
    sentence = f"Class {low} overlaps least ({100 * least:.1f} %), class {high} most ({100 * most:.1f} %)."
    sentence += " Small dots are the reference." if theirs else ""
    if len(ranked) > len(rows):
        sentence += f" The {len(rows)} worst of {len(ranked)} classes are drawn."
    values = table(
        "Classes",
        ("class", "overlap %", "reference %"),
        [(name, _cell(100 * value, ".2f"), _cell(100 * theirs[name], ".2f") if name in theirs else "")
         for name, value in ranked],
        numeric=(1, 2),
        folded=f"numbers of {len(ranked)} classes",
    )  # fmt: skip
    return (
        Figure("classes", "Classes", sentence,
               lambda width: dot_figure(rows, "overlap, %", sentence, width, log=False), values),
    )  # fmt: skip


def _generation_facts(result: EvalResult) -> list[tuple[str, str]]:
    """What ran models that generate text, and how many tokens there were."""
    pairs = []
    for label, side in (("", result), ("reference: ", result.reference)):
        ran = None if side is None else side.generation
        if ran is None:
            continue
        pairs += [(f"{label}generated by", f"{ran.runtime} ({ran.reason})"), (f"{label}tokens", f"{ran.tokens:,}")]
        if ran.window is not None:
            pairs.append((f"{label}windows", f"{ran.window} tokens, {ran.stride} apart"))
        if ran.new_tokens is not None:
            pairs.append((f"{label}new tokens", f"{ran.new_tokens} at most"))
    return pairs


def _facts(result: EvalResult) -> Facts:
    data, count = result.data, result.samples.n
    used = str(count) if count == data.samples else f"{count} of {data.samples}"
    if data.limit is not None:
        used += f", at most {data.limit} chosen with seed {data.seed}"
    pairs = [
        ("model", result.model),
        ("target", f"{result.target}{' (simulated)' if result.simulated else ''}"),
        ("task", result.task),
        ("data", data.source),
        ("digest of the data", data.digest or "unknown"),
        ("samples", used),
    ]
    if result.custom_metric is not None:
        source = result.custom_metric
        file = "" if source.file is None else f" of {source.file}"
        pairs.append(("scored by", f"{source.function}{file} ({source.digest or 'its text is unknown'})"))
    for name, text in (result.task_options or {}).items():
        pairs.append((f"option {name}", text))
    for name, output in (result.state or {}).items():
        pairs.append((f"state {name}", f"from output {output} of the step before"))
    pairs += _generation_facts(result)
    if data.columns:
        pairs.append(("columns", ", ".join(f"{name} from {column}" for name, column in data.columns.items())))
    if result.fixed_dims:
        pairs.append(("fixed dimensions", ", ".join(f"{name}={size}" for name, size in result.fixed_dims.items())))
    if result.reference is not None:
        simulated = " (simulated)" if result.reference.simulated else ""
        pairs.append(("reference", f"{result.reference.model} on {result.reference.target}{simulated}"))
    if result.outputs is not None:
        pairs.append(("kept outputs", result.outputs.file))
    return Facts("Data and models", tuple(pairs))
