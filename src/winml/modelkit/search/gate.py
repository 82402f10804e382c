"""The accuracy gate of a search: labelled data if given, otherwise agreement with the given model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from winml.modelkit.core.config import DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, DataError, RequestError, RunFailedError
from winml.modelkit.evaluation.custom_metric import CustomMetric
from winml.modelkit.evaluation.distance_report import DistanceReport
from winml.modelkit.evaluation.evaluate import (
    PRELOAD_GENERATION,
    absolute_options,
    compare_generation,
    measure_distance,
    score_run,
)
from winml.modelkit.evaluation.metrics import MetricEstimate, check_direction
from winml.modelkit.evaluation.report import RunArguments, RunReport
from winml.modelkit.evaluation.result import (
    EvalResult,
    Judging,
    Side,
    explain_too_few,
    least_cosine,
    make_result,
    sentence,
)
from winml.modelkit.measuring.rounds import ArmSpec
from winml.modelkit.search.guards import GateAnswer
from winml.modelkit.search.records import GateLimits, describe_limits
from winml.modelkit.search.trial import Accuracy
from winml.modelkit.worker.client import Worker

PRELOAD = ("winml.modelkit.evaluation.run",)
MIN_AGREEMENT = 0.99
MAX_DROP = 0.01
HANG_S, HANG_FACTOR = 10.0, 5.0
"""A config that takes this many times as long as the given model over all samples counts as hanging."""
FIRST_TIMEOUT_S = 1800.0
FEW = 64
"""Samples of a first look at a config."""
MANY = 4 * FEW
"""With fewer samples than this there is no first look."""
FEW_FIRST_S = 4.0
"""Nor is there where the given model takes less than this for all samples."""
COLLAPSE_DROP, COLLAPSE_FACTOR = 0.1, 5.0
"""A drop whose whole interval is beyond both this and so many times the limit is not looked at further.

The first samples may be of one kind, so that a smaller one is no reason."""


@dataclass(frozen=True)
class GateRequest:
    """The limits that a config must meet."""

    data: DataSection
    task: str | None = None
    """With labelled data, None means the task in the model's config.json; `outputs` needs no labels."""
    min_metric: float | None = None
    max_drop: float | None = None
    min_agreement: float | None = None
    """None means 0.99 without labels, and no limit with them."""
    judge: Literal["interval", "value"] = "interval"
    digest: str | None = None
    """Digest of the inputs, so that a search is not resumed with others."""
    metric: str | None = None
    """The metric of the task that the limits are for; None means its first."""
    max_metric: float | None = None
    """The maximum of a metric that is better when it is lower."""
    custom: CustomMetric | None = None
    """The user's own metric; no document can name one."""
    task_options: Mapping[str, str] = field(default_factory=dict)
    texts: bool = False
    """Whether the data are texts for a model that generates text."""

    @property
    def labelled(self) -> bool:
        return self.custom is not None or self.task != "outputs"

    @property
    def least_agreement(self) -> float | None:
        return MIN_AGREEMENT if self.min_agreement is None and not self.labelled else self.min_agreement

    @property
    def judging(self) -> Judging:
        given = (self.min_metric, self.max_metric, self.max_drop)
        drop = MAX_DROP if self.labelled and given == (None, None, None) else self.max_drop
        return Judging(self.metric, self.min_metric, drop, self.judge, max_metric=self.max_metric)

    @property
    def limits(self) -> GateLimits:
        judging = self.judging
        return GateLimits(
            kind="task" if self.labelled else "agreement",
            data=self.data,
            task=self.task,
            min_metric=judging.min_metric,
            max_drop=judging.max_drop,
            min_agreement=self.least_agreement,
            judge=self.judge,
            digest=self.digest,
            metric=judging.metric,
            max_metric=judging.max_metric,
            custom_metric=None if self.custom is None else self.custom.source,
            task_options=self.task_options or None,
        )

    def describe(self) -> str:
        """The gate in a sentence."""
        if not self.labelled:
            synthetic = " (synthetic inputs)" if self.data.source == "random" else ""
            return (
                f"no labelled data: outputs must agree with the given model's on `{self.data.source}`{synthetic}, "
                f"median cosine at least {self.least_agreement:g}"
            )
        return f"{describe_limits(self.limits)} on `{self.data.source}`"


class _NotScored(Exception):
    """The user's function has no score for what a config gives; the message is its own."""


class Gate:
    """Runs configs on the data on their target; the given model runs once and is kept as the reference."""

    def __init__(self, request: GateRequest, model_folder: Path, folder: Path) -> None:
        self._request = request
        self._model_folder = model_folder
        self._folder = folder
        self._reference: Side | None = None
        self._reference_s = 0.0
        self._few: Side | None = None
        """The given model on the first samples, where they are looked at before all of them."""
        self._count = 0

    @property
    def ready(self) -> bool:
        return self._reference is not None

    def reference(self, spec: ArmSpec) -> GateAnswer:
        """Run the given model as the reference; one that breaks an absolute limit ends the search."""
        started = time.monotonic()
        self._reference = side = self._run(spec, FIRST_TIMEOUT_S)
        self._reference_s = time.monotonic() - started
        judging = self._request.judging
        if self._request.custom is not None:
            least, most = judging.min_metric is not None, judging.max_metric is not None
            check_direction(side.report.metrics[0], least=least, most=most)
        result = make_result(judging, side, side, None, (), comparison=self._compare(side, side))
        broken = [c for c in result.checks if c.check in ("min-metric", "max-metric") and c.answer == "exceeded"]
        if broken:
            found, least = result.find_metric(broken[0].metric), broken[0].check == "min-metric"
            shown = "unknown" if found is None or found.value is None else f"{found.value:.4f}"
            raise CheckFailed(
                f"{broken[0].metric} of the given model is {shown}, {'below' if least else 'above'} "
                f"{broken[0].limit:g}",
                hint=f"no config of this model is expected to reach it; {'lower' if least else 'raise'} the limit",
            )
        open_checks = [c for c in result.checks if c.check == "max-drop" and c.answer == "inconclusive"]
        if open_checks:
            count, limit = result.samples.n, open_checks[0].limit
            raise RunFailedError(
                f"{count} samples cannot show that a drop stays within {limit:g}, not even for a model that says "
                "the same about all of them",
                hint=explain_too_few(open_checks, count),
            )
        if not self._request.labelled and _agreement(measure_distance(side, side)) is None:
            raise DataError(
                f"an output of the given model has no finite number for some sample of `{self._request.data.source}`",
                hint="give inputs that fit the model with `--calibration`, or labelled data with `--data`",
            )
        if self._looks_at_few(result.samples.n):
            self._few = self._run(spec, FIRST_TIMEOUT_S, limit=FEW)
        return GateAnswer(True, "", self._accuracy(result, agreement=1.0))

    def _looks_at_few(self, samples: int) -> bool:
        """Whether a first look at few samples can save time: there is a limit for the drop, and all take long."""
        is_slow = samples >= MANY and self._reference_s >= FEW_FIRST_S
        return is_slow and not self._request.texts and self._request.judging.max_drop is not None

    def _check_few(self, spec: ArmSpec) -> GateAnswer | None:
        """The answer of a first look at few samples, where a config collapses on them; None to look at all."""
        few, judging = self._few, self._request.judging
        if few is None or judging.max_drop is None:
            return None
        side = self._run(spec, max(HANG_S, HANG_FACTOR * self._reference_s), limit=FEW)
        result = make_result(judging, side, few, None, ())
        known, limit = self._accuracy(result, agreement=None), judging.max_drop
        if known.drop_interval is None or known.drop_interval.low <= max(COLLAPSE_DROP, COLLAPSE_FACTOR * limit):
            return None
        reason = f"{known.metric} drops by {known.drop:.4f} on the first {result.samples.n} samples, limit {limit:g}"
        return GateAnswer(False, f"{reason}; the others were not looked at", known)

    def check(self, spec: ArmSpec) -> GateAnswer:
        """Whether a config is accurate enough."""
        reference = self._reference
        assert reference is not None
        try:
            early = self._check_few(spec)
            if early is not None:
                return early
            side = self._run(spec, max(HANG_S, HANG_FACTOR * self._reference_s))
        except _NotScored as error:
            return GateAnswer(False, str(error))
        # Of answers there are tokens and no outputs.
        distance = measure_distance(side, reference) if side.report.outputs or not self._request.texts else None
        comparison = self._compare(side, reference)
        result = make_result(self._request.judging, side, reference, distance, (), comparison=comparison)
        agreement = None if distance is None else _agreement(distance)
        failed = [sentence(c, result) for c in result.checks if c.answer != "within"]
        least = self._request.least_agreement
        if least is not None and (agreement is None or agreement < least):
            shown = "unknown" if agreement is None else f"{agreement:.4f}"
            failed.append(f"agreement with the given model is {shown}, the minimum is {least:g}")
        return GateAnswer(not failed, "; ".join(failed), self._accuracy(result, agreement=agreement))

    def _compare(self, side: Side, reference: Side) -> dict[str, MetricEstimate] | None:
        """Numbers about two models that generate text."""
        return compare_generation(side, reference) if self._request.texts else None

    def _run(self, spec: ArmSpec, timeout_s: float, *, limit: int | None = None) -> Side:
        self._count += 1
        saved = self._folder / f"outputs{self._count}"
        args = RunArguments(
            arm=spec.arguments(),
            data=self._request.data if limit is None else replace(self._request.data, limit=limit),
            folder=str(self._model_folder),
            task=self._request.task,
            metric=self._request.judging.metric,
            min_metric=self._request.judging.min_metric,
            max_metric=self._request.judging.max_metric,
            max_drop=self._request.judging.max_drop,
            custom=self._request.custom is not None,
            task_options=absolute_options(self._request.task_options),
            reference=True,
            save=str(saved),
        )
        operation, preload = "evaluate.run", PRELOAD
        if self._request.texts:
            args = self._of_texts(args, spec)
            operation, preload = "evaluate.generate", PRELOAD_GENERATION
        with Worker(preload=preload, python=spec.python) as worker:
            what = f"evaluating `{spec.label}` on {spec.arm.target}"
            report = worker.ask(RunReport, operation, args, timeout_s=timeout_s, what=what)
        if not report.predictions:
            raise DataError(f"`{self._request.data.source}` has no samples")
        if self._request.custom is not None:
            try:
                report = score_run(self._request.custom, report, args, saved)
            except DataError:
                raise
            except RequestError as error:
                if self._reference is None:
                    raise
                # It scored the given model, so what it cannot score is this config's.
                raise _NotScored(error.message) from error
        return Side(spec.label, spec.arm.target, report, saved)

    def _of_texts(self, args: RunArguments, spec: ArmSpec) -> RunArguments:
        """The arguments for a folder that generates text; the tokenizer is that of the given model."""
        text, data = spec.arm.generation, args.data
        return replace(
            args,
            arm=replace(args.arm, model=str(Path(spec.arm.artifact).parent)),
            data=replace(data, processor=data.processor or str(self._model_folder)),
            # What is measured by onnxruntime-genai is judged by it where the task allows, which is the default.
            runtime="onnxruntime" if text is not None and text.runtime == "onnxruntime" else None,
        )

    def _is_lower_better(self, name: str | None) -> bool:
        assert self._reference is not None
        report = self._reference.report
        return any(metric.lower for metric in (*report.metrics, *report.comparison) if metric.name == name)

    def _accuracy(self, result: EvalResult, *, agreement: float | None) -> Accuracy:
        """The part of an evaluation that a trial keeps."""
        name = result.metric
        metric = None if name is None else result.find_metric(name)
        drop = None if name is None else (result.drop or {}).get(name)
        return Accuracy(
            kind="task" if self._request.labelled else "agreement",
            less_is_better=self._is_lower_better(name) or None,
            metric=name if self._request.labelled else "cosine",
            value=agreement if metric is None else metric.value,
            interval=None if metric is None else metric.interval,
            drop=None if drop is None else drop.value,
            drop_interval=None if drop is None else drop.interval,
            agreement=agreement,
            samples=result.samples.n,
        )


def _agreement(distance: DistanceReport) -> float | None:
    """The median cosine over samples of the output that agrees least; None when some output cannot be compared."""
    return None if any(output.incomparable for output in distance.outputs) else least_cosine(distance.outputs)
