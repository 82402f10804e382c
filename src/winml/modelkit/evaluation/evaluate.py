"""`winml eval`: how right a model is on its target, alone or against a reference."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building.model_argument import ModelArgument, model_argument, parts_argument
from winml.modelkit.core.build_folder import MODEL, PARTS
from winml.modelkit.core.config import DEFAULT, RANDOM, DataSection, EvalSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import (
    Interrupted,
    ModelkitError,
    PlacementError,
    RequestError,
    SessionError,
    WorkerCrashed,
)
from winml.modelkit.core.events import OnEvent, TargetChosen
from winml.modelkit.core.generation import is_decoder_folder, read_decoder_folder
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.values import read
from winml.modelkit.data import sizes
from winml.modelkit.ep import options
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.targets import Resolved
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.evaluation.custom_metric import CustomMetric, score_outputs
from winml.modelkit.evaluation.distance_report import DistanceReport, DistanceRequest, SavedOutputs
from winml.modelkit.evaluation.generation.agreement import (
    GENERATED,
    OTHER_VOCABULARY,
    DivergenceReport,
    DivergenceRequest,
    compare_losses,
    compare_tokens,
)
from winml.modelkit.evaluation.metrics import Metric, MetricEstimate, check_direction, estimate
from winml.modelkit.evaluation.report import (
    OutputsComparing,
    Role,
    RunArguments,
    RunReport,
    RunStarted,
    SamplesScoring,
    WorkerEvent,
)
from winml.modelkit.evaluation.result import EvalResult, Judging, Side, make_result, raise_for_checks
from winml.modelkit.session.arm import arm_arguments
from winml.modelkit.session.generation.graph_fit import count_vocabulary
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.scratch import ScratchFolder

PRELOAD = ("winml.modelkit.evaluation.run",)
PRELOAD_GENERATION = ("winml.modelkit.evaluation.generation.run",)
CPU = "cpu"
_STOP_WAIT_S = 5.0


@dataclass(frozen=True)
class EvalRequest:
    """Everything the user decided."""

    model: str
    data: DataSection | None = None
    task: str | None = None
    target: str | None = None
    ep: str | None = None
    device: str | None = None
    reference: str | None = None
    reference_target: str | None = None
    judging: Judging = field(default_factory=Judging)
    output: str | None = None
    threads: int | None = None
    ep_options: dict[str, str] = field(default_factory=dict)
    strict_ep: bool = False
    dims: dict[str, int] = field(default_factory=dict)
    """Sizes of open dimensions in random inputs, by name or place."""
    save_outputs: str | None = None
    """File for the outputs of the model and its reference."""
    timeout_s: float | None = None
    trust: Trust = NOTHING
    custom: CustomMetric | None = None
    """The user's own metric; no document can name one."""
    task_options: dict[str, str] = field(default_factory=dict)
    state: dict[str, str] = field(default_factory=dict)
    """Input -> output that it takes over from the step before."""
    runtime: str | None = None
    """The program that runs a model that generates text: `genai` or `onnxruntime`."""
    new_tokens: int | None = None
    """Tokens that such a model generates at most for a prompt."""

    @property
    def generates(self) -> bool:
        return generates(self.model)


def generates(model: str) -> bool:
    """Whether a model is a folder that generates text: a decoder, or an encoder with a decoder."""
    try:
        return is_decoder_folder(Path(model)) or (Path(model) / PARTS).is_file()
    except (OSError, ValueError):
        return False  # no name that the system takes


def find_model(argument: str, on_event: OnEvent, trust: Trust) -> ModelArgument:
    """The model behind an argument; of parts, the file that lists them."""
    folder = Path(argument)
    if not generates(argument) or (folder / MODEL).is_file():
        return model_argument(argument, on_event, trust=trust)
    if is_decoder_folder(folder):
        return ModelArgument(read_decoder_folder(folder).model, SessionSection())
    return parts_argument(folder, on_event, trust=trust)


def evaluate(request: EvalRequest, on_event: OnEvent) -> EvalResult:
    """Evaluate; a check that fails is raised."""
    model = find_model(request.model, on_event, request.trust.with_typed(request.ep_options))
    request, data = _complete_request(request, model.evaluation)
    check_limits(request.judging, request.custom)
    _check_generation(request)
    _check_vocabularies(request, request.task)
    if not request.generates:
        data = sizes.random_data(data, model.path, given=request.dims)
    if data.source != RANDOM:
        data = replace(data, dims={**data.dims, **request.dims})  # of a state, which the data does not hold
    chosen = targets.choose(model.target, request.target, request.ep, request.device)
    resolved = chosen.resolved
    on_event(TargetChosen(resolved.target))
    with ScratchFolder("winml-eval-") as folder:
        runs = _Runs(request, data, model, folder, on_event)
        runs.warnings += chosen.notes
        candidate = runs.candidate(resolved)
        if request.save_outputs is not None and not candidate.report.outputs:
            runs.warnings.append(f"`--save-outputs` wrote nothing: task `{candidate.report.task}` keeps no outputs")
        reference, distance, comparison = None, None, None
        if runs.compares and not candidate.report.stopped:
            with _keeping(request.judging, candidate, runs):
                _check_vocabularies(request, candidate.report.task)  # the data may have decided what the task is
                reference = runs.reference(resolved, candidate.report.task)
                on_event(OutputsComparing())
                if candidate.report.outputs:
                    distance = measure_distance(candidate, reference, keep=request.save_outputs)
                if request.generates:
                    comparison = compare_generation(candidate, reference)
    return _answer(request, candidate, reference, distance, runs.warnings, comparison)


def _check_vocabularies(request: EvalRequest, task: str | None) -> None:
    """Raise for two decoders whose next tokens cannot be compared, before minutes are spent on running them."""
    if task != "perplexity" or request.reference is None:
        return
    folders = [Path(model) for model in (request.model, request.reference)]
    if not all(map(is_decoder_folder, folders)):
        return
    mine, theirs = (count_vocabulary(read_decoder_folder(folder)) for folder in folders)
    if mine is not None and theirs is not None and mine != theirs:
        raise RequestError(
            f"`{request.model}` has {mine} tokens in its vocabulary and `{request.reference}` {theirs}, so that their "
            "next tokens cannot be compared",
            hint=OTHER_VOCABULARY,
        )


@contextlib.contextmanager
def _keeping(judging: Judging, candidate: Side, runs: _Runs) -> Iterator[None]:
    """Add what is known of the candidate to an error of the reference."""
    try:
        yield
    except (ModelkitError, KeyboardInterrupt) as error:
        alone = make_result(
            replace(judging, max_drop=None, min_agreement=None),
            candidate,
            None,
            None,
            runs.warnings,
            custom_metric=runs.metric_source,
            task_options=runs.task_options,
        )
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted("interrupted; the model without its reference is in the result", result=alone) from error
        error.result = alone
        raise


def _answer(
    request: EvalRequest,
    candidate: Side,
    reference: Side | None,
    distance: DistanceReport | None,
    warnings: list[str],
    comparison: dict[str, MetricEstimate] | None,
) -> EvalResult:
    """The result, or the error that follows from it."""
    stopped = any(side.report.stopped for side in (candidate, reference) if side is not None)
    if stopped and not candidate.report.predictions:
        raise Interrupted("interrupted")
    if request.custom is not None and candidate.report.metrics:
        judging = request.judging
        check_direction(
            candidate.report.metrics[0], least=judging.min_metric is not None, most=judging.max_metric is not None
        )
    result = make_result(
        request.judging,
        candidate,
        reference,
        distance,
        warnings,
        kept_in=request.save_outputs,
        custom_metric=None if request.custom is None else request.custom.source,
        task_options=request.task_options,
        comparison=comparison,
    )
    if stopped:
        raise Interrupted("interrupted; what was evaluated is in the result", result=result)
    raise_for_checks(result)
    return result


def _complete_request(request: EvalRequest, built: EvalSection | None) -> tuple[EvalRequest, DataSection]:
    """The request with the options of the model's build where the user gave none, and the data."""
    judging = request.judging
    if built is not None and request.data is None:
        request = replace(
            request,
            data=built.data,
            task=request.task or built.task,
            judging=replace(
                judging,
                min_metric=built.min_metric if judging.min_metric is None else judging.min_metric,
                max_drop=built.max_drop if judging.max_drop is None else judging.max_drop,
            ),
        )
    if request.data is None:
        raise RequestError("there is no data to evaluate on", hint="give it with `--data FILE`")
    _check_saving(request)
    if request.reference is None and request.reference_target is None:
        if request.judging.max_drop is not None:
            raise RequestError("`--max-drop` needs a reference", hint="name it with `--reference MODEL`")
        if request.judging.min_agreement is not None:
            raise RequestError(
                "`--min-agreement` needs a reference",
                hint="name it with `--reference MODEL`, or the same model elsewhere with `--reference-target cpu`",
            )
    return request, request.data


def check_limits(judging: Judging, custom: CustomMetric | None) -> None:
    """Raise for limits that no metric can have; the worker, which knows the metric, checks the rest."""
    limits = {"--min-metric": judging.min_metric, "--max-metric": judging.max_metric, "--max-drop": judging.max_drop}
    for option, limit in limits.items():
        if limit is not None and (not math.isfinite(limit) or (option == "--max-drop" and limit < 0.0)):
            raise RequestError(f"`{option}` must be a number that a metric can have but got {limit:g}")
    if custom is not None and isinstance(custom.lower, bool):
        known = Metric(custom.name, "score", custom.name, lower=custom.lower)
        check_direction(known, least=judging.min_metric is not None, most=judging.max_metric is not None)


def _check_generation(request: EvalRequest) -> None:
    """Raise for options that only models of the other kind have."""
    if not request.generates:
        given = {"--runtime": request.runtime, "--new-tokens": request.new_tokens}
        named = next((option for option, value in given.items() if value is not None), None)
        if named is not None:
            raise RequestError(
                f"`{named}` is for folders that generate text, and `{request.model}` is none",
                hint="such a folder has genai_config.json or parts.json; `winml build -m MODEL -o DIR` makes it",
            )
        return
    if request.custom is not None:
        raise RequestError("a model that generates text is judged by its tasks, not by a function")
    if request.state or request.output is not None:
        option = "--state" if request.state else "--output-name"
        raise RequestError(f"`{option}` is for models that are run once, and `{request.model}` generates text")
    if request.judging.min_agreement is not None and request.task not in (None, "perplexity"):
        raise RequestError(
            f"`--min-agreement` is about outputs, and task `{request.task}` compares tokens",
            hint="`--metric equal_tokens --min-metric X` is its limit",
        )
    if request.reference is not None and not generates(request.reference):
        raise RequestError(
            f"the reference `{request.reference}` does not generate text, but `{request.model}` does",
            hint="name a folder with genai_config.json or parts.json",
        )


def _check_saving(request: EvalRequest) -> None:
    """Check before anything runs that the outputs can be saved afterwards."""
    if request.save_outputs is None:
        return
    if request.reference is None and request.reference_target is None:
        raise RequestError("`--save-outputs` needs a reference", hint="name it with `--reference MODEL`")
    if Path(request.save_outputs).exists():
        raise RequestError(f"output file exists: `{request.save_outputs}`", hint="name another file")
    if Path(request.save_outputs).suffix != ".npz":
        raise RequestError(f"outputs are saved as .npz but got `{request.save_outputs}`")


class _Runs:
    """Runs of one evaluation, each in a process of its own."""

    def __init__(
        self, request: EvalRequest, data: DataSection, model: ModelArgument, folder: Path, on_event: OnEvent
    ) -> None:
        self._request = request
        self._data = data
        self._model = model
        self._folder = folder
        self._on_event = on_event
        self.compares = request.reference is not None or request.reference_target is not None
        self.metric_source = None if request.custom is None else request.custom.source
        self.task_options = request.task_options
        self.warnings: list[str] = []
        self._operation = "evaluate.generate" if request.generates else "evaluate.run"

    def candidate(self, resolved: Resolved) -> Side:
        request = self._request
        given = {**self._model.section.ep_options, **request.ep_options}
        args = self._arguments(self._model, resolved, given, task=request.task, strict_ep=request.strict_ep)
        return self._run("candidate", request.model, args, resolved, self._model.build)

    def reference(self, resolved: Resolved, task: str) -> Side:
        """The reference on the target it was named with, else on the candidate's, else on the CPU, with a note."""
        asked = self._request.reference_target
        own = None if self._request.reference is None else self._own_target(self._request.reference, resolved)
        if asked is None and own is not None:
            self.warnings.append(f"the reference runs on {own}, which it was built for")
            asked = own
        if asked is not None:
            there = targets.resolve(asked, None, None)
            return self._reference(there, task, same=there.target == resolved.target)
        try:
            return self._reference(resolved, task, same=True)
        except (SessionError, PlacementError, WorkerCrashed) as error:
            if resolved.target.ep == CPU:
                raise
            self.warnings.append(f"the reference runs on cpu, because it does not run on {resolved.target}: {error}")
        return self._reference(targets.resolve(CPU, None, None), task, same=False)

    def _own_target(self, reference: str, resolved: Resolved) -> str | None:
        """The target that a reference which generates text was built for, where it is another one.

        Graphs for one device are of another kind than those for another: one graph with a cache, or parts.
        """
        if not self._request.generates:
            return None
        trust = self._request.trust.with_typed(self._request.ep_options)
        built_for = find_model(reference, self._on_event, trust).target
        return None if built_for in (None, str(resolved.target)) else built_for

    def _reference(self, resolved: Resolved, task: str, *, same: bool) -> Side:
        """Options of the EP apply to the same target only."""
        name = self._request.reference or self._request.model
        model = find_model(name, self._on_event, self._request.trust.with_typed(self._request.ep_options))
        given = {**model.section.ep_options, **self._request.ep_options}
        if given and not same:
            options = ", ".join(f"{k}={v}" for k, v in given.items())
            self.warnings.append(f"provider options are not used for the reference on {resolved.target}: {options}")
        args = self._arguments(model, resolved, given if same else {}, task=task, strict_ep=False)
        return self._run("reference", name, args, resolved, model.build)

    def _run(self, role: Role, name: str, args: RunArguments, resolved: Resolved, build: str | None) -> Side:
        custom = self._request.custom
        saved = self._folder / role if self.compares or custom is not None else None
        number, runs = (2 if role == "reference" else 1), (2 if self.compares else 1)
        self._on_event(RunStarted(role=role, number=number, runs=runs))
        preload = PRELOAD_GENERATION if self._request.generates else PRELOAD
        with Worker(preload=preload, python=resolved.installed.python) as worker:
            what = f"running `{Path(args.arm.model).name}` on {resolved.target}"
            report = self._report(worker, replace(args, save=None if saved is None else str(saved)), what)
        if custom is not None:
            assert saved is not None
            self._on_event(SamplesScoring(function=custom.source.function))
            report = score_run(custom, report, args, saved)
        if self._data.source != DEFAULT:
            # As the user wrote it; of default data the worker knows the file.
            report = replace(report, data=replace(report.data, source=self._data.source))
        return Side(name, resolved.target, report, saved, build)

    def _report(self, worker: Worker, args: RunArguments, what: str) -> RunReport:
        """What the run gave; after Ctrl-C what it has so far, marked as stopped."""
        try:
            return worker.ask(
                RunReport,
                self._operation,
                args,
                timeout_s=self._request.timeout_s,
                events=WorkerEvent,
                on_event=self._on_event,
                what=what,
            )
        except KeyboardInterrupt:
            try:
                report = read(RunReport, worker.stop(timeout_s=_STOP_WAIT_S), self._operation)
            except ModelkitError as error:
                # A sample that takes longer than a user waits after Ctrl-C takes the others with it.
                raise Interrupted("interrupted", details=error.details) from error
            return replace(report, stopped=True)

    def _arguments(
        self,
        model: ModelArgument,
        resolved: Resolved,
        ep_options: dict[str, str],
        *,
        task: str | None,
        strict_ep: bool,
    ) -> RunArguments:
        request, target = self._request, resolved.target
        threads = request.threads if request.threads is not None else model.section.threads
        given = options.check_options(target, options.with_threads(target, ep_options, threads))
        # What generates is opened by its folder.
        path = model.path.parent if request.generates else sizes.openable(model.path, target, self._folder)
        arm = Arm(
            artifact=str(path.absolute()),
            target=target,
            session=replace(model.section, threads=threads, ep_options=given),
        )
        return RunArguments(
            arm=arm_arguments(arm, resolved.installed.package.distribution, strict_ep=strict_ep),
            data=self._data.absolute(),
            folder=str(self._model.path.absolute().parent),
            task=task,
            metric=request.judging.metric,
            min_metric=request.judging.min_metric,
            max_metric=request.judging.max_metric,
            max_drop=request.judging.max_drop,
            output=request.output,
            reference=self.compares,
            custom=request.custom is not None,
            task_options=absolute_options(request.task_options),
            state=request.state,
            runtime=request.runtime,
            new_tokens=request.new_tokens,
        )


def score_run(custom: CustomMetric, report: RunReport, args: RunArguments, saved: Path) -> RunReport:
    """The report of a run with the scores of the user's own function, which gets the outputs that were saved."""
    folder, section = Path(args.data.processor or args.folder), args.data
    if section.source == DEFAULT:
        # Here, because data that lies on this machine needs no hub.
        from winml.modelkit.data.defaults import taken_default

        section = taken_default(section, report.task, report.data.source)
    return score_outputs(custom, report, saved, section, folder)


def absolute_options(given: Mapping[str, str]) -> dict[str, str]:
    """Options of a task as a worker understands them, which works in another folder."""
    return {name: _absolute(text) for name, text in given.items()}


def _absolute(text: str) -> str:
    """The value of an option as another folder understands it: a file by its whole path."""
    try:
        return str(Path(text).absolute()) if Path(text).is_file() else text
    except (OSError, ValueError):
        return text  # no name that the system takes


def measure_distance(candidate: Side, reference: Side, *, keep: str | None = None) -> DistanceReport:
    """How far the outputs are apart over the samples that both have; `keep` is a file for them."""
    request = DistanceRequest(
        candidate=SavedOutputs(path=str(candidate.saved), outputs=candidate.report.outputs),
        reference=SavedOutputs(path=str(reference.saved), outputs=reference.report.outputs),
        samples=min(len(side.report.predictions) for side in (candidate, reference)),
        keep=None if keep is None else str(Path(keep).absolute()),
    )
    with Worker() as worker:
        return worker.ask(DistanceReport, "evaluate.distance", request, what="comparing outputs")


def compare_generation(candidate: Side, reference: Side) -> dict[str, MetricEstimate]:
    """Numbers about two models that generate text, over the samples that both have."""
    count = min(len(side.report.predictions) for side in (candidate, reference))
    mine, theirs = (
        {name: values[:count] for name, values in side.report.series.items()} for side in (candidate, reference)
    )
    series: dict[str, Sequence[Any]] = dict(mine)
    if GENERATED in mine:
        series |= compare_tokens(mine[GENERATED], theirs[GENERATED])
    elif candidate.report.outputs:
        series |= {"more_loss": compare_losses(mine, theirs), **vars(_ask_divergence(candidate, reference, count))}
    return {metric.name: estimate(metric, series) for metric in candidate.report.comparison if metric.series in series}


def _ask_divergence(candidate: Side, reference: Side, count: int) -> DivergenceReport:
    asked = DivergenceRequest(candidate=str(candidate.saved), reference=str(reference.saved), samples=count)
    with Worker() as worker:
        return worker.ask(DivergenceReport, "evaluate.diverge", asked, what="comparing next tokens")
