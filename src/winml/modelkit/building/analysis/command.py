"""`winml analyze`: which nodes a target takes and why not the others, by asking it where it is installed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path

from winml.modelkit.building.analysis import answer
from winml.modelkit.building.analysis.reasons import Reason, read_reasons
from winml.modelkit.building.analysis.result import (
    AnalyzeResult,
    Asked,
    EPAnswer,
    Fusion,
    Fusions,
    HazardFound,
    LookedUp,
    OpAnswer,
    PreparedModel,
    TargetAnswer,
)
from winml.modelkit.building.events import AskingTarget, PassStarted, ReadingModel, TargetAnswered
from winml.modelkit.building.model_argument import model_argument
from winml.modelkit.building.optimize.result import Candidate, Candidates
from winml.modelkit.building.optimize.support import find_unsupported
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.errors import (
    CheckFailed,
    EPUnavailableError,
    ModelFileError,
    ModelkitError,
    PlacementError,
    RequestError,
    RunFailedError,
    SessionError,
    UnavailableError,
)
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.target import Target
from winml.modelkit.data import sizes
from winml.modelkit.data.sizes import KnownSizes
from winml.modelkit.ep import catalog, options
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.probing import Planned
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.graph.sizes import Size
from winml.modelkit.knowledge import operators
from winml.modelkit.session.arm import arm_arguments
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.limits import ask_timeout_s

PRELOAD = ("winml.modelkit.building.analysis.prepare",)
ASK_PRELOAD = ("winml.modelkit.building.analysis.ask",)


@dataclass(frozen=True)
class AnalyzeRequest:
    """Everything the user decided."""

    model: str
    targets: tuple[str, ...] = ()
    """Targets by name; none leaves the choice to `ep` and `device`."""
    ep: str | None = None
    device: str | None = None
    all_targets: bool = False
    """Every EP of the table on each of its devices."""
    dims: dict[str, int] = field(default_factory=dict)
    ep_options: dict[str, str] = field(default_factory=dict)
    fusions: bool = True
    timeout_s: float | None = None
    """Seconds for each step; None is by the size of the model."""
    shown_as: str | None = None
    """What the result and its commands call the model; None takes `model`."""
    trust: Trust = NOTHING

    @property
    def name(self) -> str:
        return self.shown_as or self.model

    @property
    def is_for_several(self) -> bool:
        return self.all_targets or len(self.targets) > 1


def analyze(request: AnalyzeRequest, on_event: OnEvent) -> AnalyzeResult:
    """Ask every installed target and look up the others in the tables."""
    argument = model_argument(request.model, on_event, trust=request.trust.with_typed(request.ep_options))
    plans = _plan(request, argument.target)
    with Worker(preload=PRELOAD) as worker:
        on_event(ReadingModel(argument.path.name))
        args = {
            "path": str(argument.path),
            "dims": request.dims,
            "targets": [(p.target.ep, p.target.device) for p in plans],
        }
        prepared = worker.ask(
            PreparedModel,
            "analysis.prepare",
            args,
            timeout_s=request.timeout_s,
            what=f"reading `{argument.path.name}`",
        )
        known = sizes.find(argument.path, request.dims, worker=worker)
        npu = any(plan.target.device == "npu" and plan.here is not None for plan in plans)
        compiled = bool(prepared.facts.compiled_for)
        if npu and not request.all_targets and not compiled:
            known.require()
        asker = _Asker(prepared, argument.section, request, known)
        answers = []
        for number, plan in enumerate(plans):
            on_event(AskingTarget(str(plan.target), number, len(plans)))
            answers.append(asker.ask(plan))
            on_event(TargetAnswered(str(plan.target), answers[-1].status))
        _raise_if_invalid(answers)
        wanted = [plan.target for plan in plans]
        no_fusions = not request.fusions or compiled
        fusions = None if no_fusions else _find_fusions(worker, argument.path, wanted, request, on_event)
    return AnalyzeResult(
        model=request.name,
        facts=prepared.facts,
        supported=all(answer.status == "supported" for answer in answers),
        targets=tuple(answers),
        fusions=fusions,
    )


def _raise_if_invalid(answers: Sequence[TargetAnswer]) -> None:
    """Raise when every runtime that was asked calls the model invalid; a single one may only be too old for it."""
    errors = [answer.error for answer in answers if answer.source.kind == "asked"]
    if errors and all(error is not None and error.code == ModelFileError.code for error in errors):
        assert errors[0] is not None
        raise errors[0].exception()


def check(result: AnalyzeResult) -> None:
    """Raise when a target does not support the whole model, with the result beside the error.

    A crash or a timeout is the command's own failure when no other target could be asked.
    """
    if result.supported:
        return
    broken = [answer.error for answer in result.targets if answer.status == "failed"]
    if len(broken) == len(result.targets) and broken[0] is not None:
        raise broken[0].exception(result)
    unknown = [f"`{t.target}`" for t in result.targets if t.status == "unknown"]
    problems = [f"`{t.target}` {_short(t)}" for t in result.targets if t.status not in ("supported", "unknown")]
    if not problems:
        raise UnavailableError(
            f"cannot tell: {', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not available on this machine, "
            "and no table covers the operators",
            hint="run it where the provider is installed; `winml sys` shows how to install it",
            result=result,
        )
    problems += [f"unknown on {', '.join(unknown)}"] if unknown else []
    raise CheckFailed(f"not fully supported: {'; '.join(problems)}", result=result)


def _short(answer: TargetAnswer) -> str:
    if answer.status in ("refused", "failed"):
        return answer.status
    counts = answer.counts
    numbers = ((counts.partial, "partial"), (counts.unsupported, "unsupported"), (counts.unknown, "unknown"))
    return f"({', '.join(f'{number} {status}' for number, status in numbers if number)})"


def _plan(request: AnalyzeRequest, built_for: str | None) -> list[Planned]:
    if request.ep_options and request.is_for_several:
        raise RequestError("`--ep-options` needs one target", hint="name it with `--target EP/DEVICE`")
    if not request.all_targets:
        named = request.targets or (built_for if request.ep is None and request.device is None else None,)
        return [targets.plan(name, request.ep, request.device) for name in named]
    if request.targets or request.ep or request.device:
        raise RequestError("`--all` cannot be combined with `--target`, `--targets`, `--ep` or `--device`")
    every = [Target(info.name, device) for info in catalog.TABLE for device in info.devices]
    return [targets.plan(f"{target.ep}/{target.device}", None, None) for target in every]


@dataclass(frozen=True)
class _Asker:
    """Asks targets about one prepared model."""

    prepared: PreparedModel
    section: SessionSection
    request: AnalyzeRequest
    known: KnownSizes
    """Sizes of open dimensions, which an NPU needs."""

    def ask(self, plan: Planned) -> TargetAnswer:
        """The answer for the model on one target; a failure of the EP is an answer."""
        if plan.here is None:
            assert plan.absent is not None
            return self._look_up(plan.target, plan.absent)
        section = self._section(plan.target)
        arm = Arm(artifact=self.prepared.asked, target=plan.target, session=section)
        args = arm_arguments(arm, plan.here.installed.package.distribution)
        timeout_s = self.request.timeout_s or ask_timeout_s(Path(self.prepared.asked))
        with Worker(preload=ASK_PRELOAD, python=plan.here.installed.python) as worker:
            try:
                reply = worker.ask(
                    EPAnswer, "analysis.ask", args, timeout_s=timeout_s, what=f"opening the model on {plan.target}"
                )
            except (RunFailedError, ModelFileError) as error:
                return self._failure(plan.target, error, read_reasons(worker.log()), section)
            except EPUnavailableError as error:
                return self._look_up(plan.target, error)
            return self._answer(plan.target, reply, read_reasons(worker.log()), section)

    def _section(self, target: Target) -> SessionSection:
        """How the session is opened: with the options of the build, then of the user, and no size left open for an NPU.

        A build's EP options are for its own target, so they are ignored where several are asked.
        """
        built_for = {} if self.request.is_for_several else self.section.ep_options
        given = options.check_options(target, {**built_for, **self.request.ep_options})
        fixed = {**self.section.fixed_dims, **self.prepared.axes}
        if target.device == "npu":
            fixed = {**self.known.dims, **fixed}
        return replace(self.section, ep_options=given, fixed_dims=fixed)

    def _answer(self, target: Target, reply: EPAnswer, reasons: list[Reason], section: SessionSection) -> TargetAnswer:
        ep = catalog.BY_NAME[target.ep].full_name
        names = frozenset(name for name, _ in self.prepared.nodes)
        placed = answer.place_nodes(reply.nodes, reasons)
        nodes = [node for node in placed if not answer.is_added(node, names)]
        ops = answer.summarize_ops(nodes, ep)
        return TargetAnswer(
            target=target,
            status=answer.verdict(ops),
            source=Asked(
                runtime=reply.environment.runtime,
                ep=reply.environment.ep,
                provider_options=reply.provider_options,
                added_options=reply.added_options,
                fixed_dims=section.fixed_dims,
                sizes=self._sizes(section),
            ),
            counts=answer.count(ops),
            ops=ops,
            placement=answer.placement(placed, target, names),
            left=answer.find_left_nodes(nodes, ep),
            gone=answer.count_removed(self.prepared.nodes, placed),
            hazards=self._hazards(target, ops),
        )

    def _look_up(self, target: Target, absent: EPUnavailableError) -> TargetAnswer:
        ops = answer.table_ops(self.prepared.facts.ops, target)
        known = operators.load_table(target.ep, target.device)
        return TargetAnswer(
            target=target,
            status=answer.verdict(ops),
            source=LookedUp(kind="table" if known else "none", table=known.source if known else None),
            counts=answer.count(ops),
            ops=ops,
            hazards=self._hazards(target, ops),
            absent=absent.message,
        )

    def _failure(
        self, target: Target, error: ModelkitError, reasons: list[Reason], section: SessionSection
    ) -> TargetAnswer:
        ops = answer.unknown_ops(self.prepared.facts.ops, reasons)
        # The user's file in place of the copy that was asked about.
        message = error.message.replace(self.prepared.asked, self.request.name)
        return TargetAnswer(
            target=target,
            status="refused" if isinstance(error, SessionError | PlacementError | ModelFileError) else "failed",
            source=Asked(fixed_dims=section.fixed_dims, sizes=self._sizes(section)),
            counts=answer.count(ops),
            ops=ops,
            hazards=self._hazards(target, ops),
            error=replace(ErrorObject.of(error), message=message),
        )

    def _sizes(self, section: SessionSection) -> dict[str, Size]:
        """Where each size comes from that the session was opened with."""
        return {name: size for name, size in self.known.sizes.items() if name in section.fixed_dims}

    def _hazards(self, target: Target, ops: Sequence[OpAnswer]) -> tuple[HazardFound, ...]:
        """The hazards of the tables, except those about operators that the EP itself takes."""
        supported = {op.op for op in ops if op.status == "supported"}
        found = self.prepared.hazards[f"{target.ep}/{target.device}"]
        return tuple(self._fix(h, target) for h in found if not h.ops or not supported.issuperset(h.ops))

    def _fix(self, hazard: HazardFound, target: Target) -> HazardFound:
        """A hazard whose fix is a command for this model."""
        if hazard.fix is None:
            return hazard
        if self.known.missing and "{dims}" in hazard.fix:
            # No command here: an unknown size would be a guess.
            open_names = ", ".join(f"`{name}`" for name in self.known.missing)
            message = f"{hazard.message}; name the sizes of {open_names} with `--dim`"
            return replace(hazard, fix=None, message=message)
        dims = " ".join(f"--dim {shell_word(f'{name}={size.size}')}" for name, size in self.known.sizes.items())
        stem = re.sub(r"[^\w.-]", "_", Path(self.request.name).stem, flags=re.ASCII)
        fix = hazard.fix.format(model=shell_word(self.request.name), stem=stem, target=target, dims=dims)
        return replace(hazard, fix=fix)


def _find_fusions(
    worker: Worker, path: Path, wanted: Sequence[Target], request: AnalyzeRequest, on_event: OnEvent
) -> Fusions:
    """The passes of `winml optimize` that would change the model, found by running each one alone."""
    try:
        found = worker.ask(
            Candidates,
            "optimize.candidates",
            {"model": str(path), "passes": None},
            timeout_s=request.timeout_s or ask_timeout_s(path),
            events=PassStarted,
            on_event=on_event,
            what="trying the optimizer's passes",
        )
    except RunFailedError as error:
        return Fusions(tried=0, passes=(), error=ErrorObject.of(error))
    passes = tuple(_fusion(row, wanted) for row in found.passes if row.status != "no change")
    return Fusions(tried=len(found.passes), passes=passes, error=None)


def _fusion(row: Candidate, wanted: Sequence[Target]) -> Fusion:
    """A pass with the targets that refuse what it makes."""
    made = [op for op, count in row.ops_delta.items() if count > 0]
    assert row.status != "no change"
    return Fusion(
        name=row.name,
        what=row.what,
        status=row.status,
        note=row.note,
        after=row.after,
        nodes_delta=row.nodes_delta,
        ops_delta=row.ops_delta,
        seconds=row.seconds,
        not_for=tuple(str(target) for target in wanted if find_unsupported(target, made)),
    )
