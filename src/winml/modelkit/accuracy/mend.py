"""`winml quantize` with a limit: as much of a model as possible is quantized, and the limit is proven on the target.

First come changes that leave every layer in 8 bits (`quantize/mending.py`), one after the other; those that bring the
outputs nearer are kept. Then layers that do most to the outputs (`winml debug`) get 16-bit activations, where the
target has them, or stay in float: twice as many each time until the limit holds, then as few of the first as needed,
then without those of them that are not needed. Every attempt is quantized and evaluated on the target: nothing is
taken for granted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.accuracy.advice import summarize_mend
from winml.modelkit.accuracy.debug import DebugRequest, debug
from winml.modelkit.accuracy.events import MendAttempt
from winml.modelkit.accuracy.mend_result import Attempt, FailedMend, MendResult
from winml.modelkit.accuracy.naming import name_nodes
from winml.modelkit.accuracy.result import DebugResult, LayerNoise
from winml.modelkit.building import output_model
from winml.modelkit.building.model_argument import model_path
from winml.modelkit.building.quantize.command import QuantizeRequest, choose_section, quantize
from winml.modelkit.building.quantize.mending import MendingLevel, mending_levels
from winml.modelkit.building.quantize.result import QuantizeResult
from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import (
    CheckFailed,
    PlacementError,
    RequestError,
    RunFailedError,
    SessionError,
    WorkerCrashed,
    WorkerTimeout,
)
from winml.modelkit.core.events import OnEvent, ignore
from winml.modelkit.core.target import Target
from winml.modelkit.ep import probing as targets
from winml.modelkit.evaluation.evaluate import EvalRequest, evaluate
from winml.modelkit.evaluation.result import EvalResult, Judging
from winml.modelkit.worker.scratch import ScratchFolder

PRUNING = 12
"""Attempts at most to leave out layers that are not needed."""
ALL_EFFECTS = 100_000
"""Every layer is asked what it does to the outputs."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The limit that the quantized model has to hold on the target, against the model before."""

    data: DataSection
    task: str | None = None
    metric: str | None = None
    max_drop: float | None = None
    min_agreement: float | None = None
    by: Literal["interval", "value"] = "interval"


def quantize_within(request: QuantizeRequest, goal: Goal, on_event: OnEvent) -> MendResult:
    """Quantize as much of a model as holds the limit on the target; nothing is written where nothing does."""
    started, named = time.monotonic(), request.model
    if goal.max_drop is None and goal.min_agreement is None:
        raise RequestError("there is no limit to hold", hint="give `--max-drop X` or `--min-agreement X`")
    source = model_path(request.model, on_event)
    output = Path(request.output).absolute()
    output_model.check(output, source, overwrite=request.overwrite)
    target = targets.resolve(request.target, request.ep, request.device).target
    request, goal = _look_beside(source.absolute().parent, request, goal)
    with ScratchFolder("winml-mend-") as folder:
        source = name_nodes(source, folder)
        request = replace(request, model=str(source))
        search = _Search(request, goal, source, target, folder, on_event)
        attempt, evaluation = search.run()
        # From the cache, with its outputs compared as was asked for.
        quantized = quantize(
            replace(request, changes=search.changes(attempt), target=str(target), ep=None, device=None), on_event
        )
    done = "have 16-bit activations" if attempt.raised else "stay in float"
    some = f"{attempt.raised or attempt.kept} of {search.layers} layers {done}"
    notes = [some if attempt.raised or attempt.kept else "all that the precision quantizes is quantized"]
    if attempt.mending:
        notes.append(f"changed so that it loses less: {', '.join(attempt.mending)}")
    if goal.data.source == RANDOM:
        notes.append("the limit was held on random inputs")
    return MendResult(
        model=named,
        output=request.output,
        max_drop=goal.max_drop,
        min_agreement=goal.min_agreement,
        layers=search.layers,
        kept=attempt.nodes,
        raised=attempt.wide_nodes,
        summary=tuple(summarize_mend(search.attempts[0], attempt, search.chosen, target)),
        attempts=tuple(search.attempts),
        quantized=replace(quantized, model=named),
        evaluation=replace(evaluation, model=request.output),
        notes=(*notes, *quantized.outcome.notes),
        warnings=(*quantized.outcome.warnings, *evaluation.warnings),
        seconds=round(time.monotonic() - started, 3),
    )


def _look_beside(folder: Path, request: QuantizeRequest, goal: Goal) -> tuple[QuantizeRequest, Goal]:
    """The request and the limit with the processor of the model: attempts are in another folder than it."""

    def find(data: DataSection | None) -> DataSection | None:
        return None if data is None or data.processor else replace(data, processor=str(folder))

    data, samples, limit = find(request.data), find(request.sample_data), find(goal.data)
    request = replace(request, data=data or request.data, sample_data=samples or request.sample_data)
    return request, replace(goal, data=limit or goal.data)


_Found = tuple[Attempt, EvalResult]
Way = Literal["raised", "kept"]
"""What is done with a layer: 16-bit activations, or float."""
Layers = Sequence[LayerNoise]


class _Search:
    """Attempts with more and fewer layers raised to 16 bits or kept in float."""

    def __init__(
        self, request: QuantizeRequest, goal: Goal, source: Path, target: Target, folder: Path, on_event: OnEvent
    ) -> None:
        self.request, self.goal, self.source, self.target = request, goal, source, str(target)
        self.folder, self.on_event = folder, on_event
        self.attempts: list[Attempt] = []
        self.layers: int | None = None
        self.quantized: QuantizeResult | None = None
        """The first attempt, which has the section in full and the operators of the model."""
        self.mending: tuple[MendingLevel, ...] = ()
        """Changes that are kept."""
        self.base = self.folder / "0.onnx"
        """The nearest attempt with all layers quantized, which layers are ranked by."""
        self.chosen: Layers = ()
        """Layers of the attempt that was found, the one that does most first."""
        _, section = choose_section(request, target)
        can_raise = section.rules == "qnn" and section.activation_type in ("uint8", "int8")
        self.ways: tuple[Way, ...] = ("raised", "kept") if can_raise else ("kept",)

    def run(self) -> _Found:
        """The attempt with the fewest layers raised, or else in float, that holds the limit."""
        found = self.attempt((), "kept") or self.try_levels()
        if found is not None:
            return found
        ranking = [layer for layer in self.rank().layers if _may_stay(layer) and layer.nodes]
        self.layers = len(ranking)
        for way in self.ways:
            found = self.grow(ranking, way)
            if found is not None:
                return found
        raise self.nothing_helps()

    def grow(self, ranking: Layers, way: Way) -> _Found | None:
        """As few layers as are needed, of one way; None where not even all of them are enough."""
        found: _Found | None = None
        failed, count = 0, 1
        while count <= len(ranking):
            found = self.attempt(ranking[:count], way)
            if found is not None:
                break
            failed, count = count, (2 * count if count == len(ranking) else min(2 * count, len(ranking)))
        if found is None:
            return None
        while count - failed > 1:
            middle = (count + failed) // 2
            fewer = self.attempt(ranking[:middle], way)
            if fewer is None:
                failed = middle
            else:
                found, count = fewer, middle
        self.chosen = ranking[:count]
        return self.prune(found, way)

    def prune(self, found: _Found, way: Way) -> _Found:
        """Without layers that are not needed: a layer was taken because it does much, not because the limit needs it.

        The last one is needed, as without it the limit does not hold. Halves of the others are left out first.
        """
        waiting = [tuple(range(len(self.chosen) - 1))] if len(self.chosen) > 1 else []
        chosen, left = list(range(len(self.chosen))), PRUNING
        layers = self.chosen
        while waiting and left:
            group = waiting.pop()
            rest = [index for index in chosen if index not in group]
            left -= 1
            fewer = self.attempt([layers[index] for index in rest], way)
            if fewer is not None:
                found, chosen = fewer, rest
            elif len(group) > 1:
                middle = len(group) // 2
                waiting += [group[:middle], group[middle:]]
        self.chosen = [layers[index] for index in chosen]
        return found

    def try_levels(self) -> _Found | None:
        """The first attempt with all layers quantized that holds the limit; changes that help are kept on the way."""
        assert self.quantized is not None
        nodes = self.quantized.outcome.nodes
        ops = {*nodes.quantized, *(left.op for left in nodes.left)}
        best = self.attempts[0]
        for level in mending_levels(self.quantized.section, ops):
            before, self.mending = self.mending, (*self.mending, level)
            found, attempt = self.attempt((), "kept"), self.attempts[-1]
            if found is not None:
                return found
            if _is_nearer(attempt, best):
                best, self.base = attempt, self.folder / f"{len(self.attempts) - 1}.onnx"
            else:
                self.mending = before
        return None

    def rank(self) -> DebugResult:
        """Layers by what their noise does to the outputs, in the model with all of them quantized."""
        data = replace(self.goal.data, limit=min(self.goal.data.limit or 4, 4))
        request = DebugRequest(
            str(self.base),
            str(self.source),
            data,
            target=self.target,
            dims=self.request.dims,
            effects=ALL_EFFECTS,
            timeout_s=self.request.timeout_s,
        )
        return debug(request, self.on_event)

    def attempt(self, layers: Layers, way: Way) -> _Found | None:
        """Quantize with these layers raised or in float, and evaluate on the target; None if the limit is not held."""
        started = time.monotonic()
        nodes = tuple(dict.fromkeys(node.name for layer in layers for node in layer.nodes))
        self.on_event(MendAttempt(number=len(self.attempts) + 1, kept=len(layers), raised=way == "raised"))
        path = self.folder / f"{len(self.attempts)}.onnx"
        judging = Judging(
            self.goal.metric, max_drop=self.goal.max_drop, min_agreement=self.goal.min_agreement, by=self.goal.by
        )
        request = EvalRequest(
            model=str(path), data=self.goal.data, task=self.goal.task, target=self.target, reference=str(self.source),
            reference_target="cpu", judging=judging, dims=self.request.dims, timeout_s=self.request.timeout_s,
        )  # fmt: skip
        tried = Attempt(
            kept=0 if way == "raised" else len(layers), nodes=() if way == "raised" else nodes,
            raised=len(layers) if way == "raised" else 0, wide_nodes=nodes if way == "raised" else (),
            answer="failed", metric=None, value=None, drop=None, agreement=None, bytes=None, seconds=0.0,
            mending=tuple(level.name for level in self.mending),
        )  # fmt: skip
        found: EvalResult | None = None
        reason = None
        try:
            quantized = quantize(
                replace(
                    self.request, model=str(self.source), output=str(path), changes=self.changes(tried),
                    target=self.target, ep=None, device=None, overwrite=True,
                ),
                ignore,
            )  # fmt: skip
            self.quantized = self.quantized or quantized
            found = evaluation = evaluate(request, ignore)
        except (CheckFailed, RunFailedError, SessionError, PlacementError, WorkerCrashed, WorkerTimeout) as error:
            reason = error.message
            if not isinstance(error.result, EvalResult):
                if not self.attempts:
                    raise  # what the model is in full nobody can mend
                self.attempts.append(replace(tried, seconds=round(time.monotonic() - started, 3), reason=reason))
                return None
            evaluation = error.result
        attempt = _describe(tried, evaluation, path, time.monotonic() - started, reason)
        self.attempts.append(attempt)
        return None if found is None else (attempt, found)

    def changes(self, attempt: Attempt) -> dict[str, Any]:
        """Keys of the section with nodes that stay in float or are raised, besides those that were asked for."""
        changes = dict(self.request.changes)
        for level in self.mending:
            changes |= level.changes
        for key, nodes in (("exclude_nodes", attempt.nodes), ("wide_nodes", attempt.wide_nodes)):
            if nodes:
                changes[key] = (*(changes.get(key) or ()), *nodes)
        return changes

    def nothing_helps(self) -> CheckFailed:
        limits = {"--max-drop": self.goal.max_drop, "--min-agreement": self.goal.min_agreement}
        limit = " ".join(f"{option} {value!r}" for option, value in limits.items() if value is not None)
        return CheckFailed(
            f"none of {len(self.attempts)} assignments holds `{limit}` on {self.target}, not even with all "
            f"{self.layers} layers in float",
            hint="more samples, another precision (`-p w8a16`), or a limit that the target can hold in float",
            result=FailedMend(attempts=tuple(self.attempts)),
        )


def _is_nearer(attempt: Attempt, best: Attempt) -> bool:
    """Whether outputs are nearer to the original's; a metric of few samples moves by chance, so it decides second."""
    if attempt.agreement is not None and best.agreement is not None:
        return attempt.agreement > best.agreement
    return attempt.drop is not None and (best.drop is None or attempt.drop < best.drop)


def _may_stay(layer: LayerNoise) -> bool:
    """Whether a layer loses anything that it would keep in float."""
    return layer.own is None or not layer.own.equal or layer.unexplained_db is not None


def _describe(tried: Attempt, found: EvalResult, path: Path, seconds: float, reason: str | None) -> Attempt:
    """An attempt with what it came to on the target."""
    name = found.metric if found.metric in found.metrics else next(iter(found.metrics), None)
    drop = (found.drop or {}).get(name) if name is not None else None
    medians = [one.cosine.median for one in found.distance or () if one.cosine is not None]
    answers = {check.answer for check in found.checks}
    answer: Literal["within", "exceeded", "inconclusive"] = "within"
    if "exceeded" in answers:
        answer = "exceeded"
    elif "inconclusive" in answers:
        answer = "inconclusive"
    return replace(
        tried,
        answer=answer,
        metric=name,
        value=None if name is None else found.metrics[name].value,
        drop=None if drop is None else drop.value,
        agreement=min(medians, default=None),
        bytes=path.stat().st_size if path.exists() else None,
        placed=dict(found.placement.nodes),
        seconds=round(seconds, 3),
        reason=reason,
    )
