"""`winml analyze`: which nodes a target takes and why not the others, by asking it where it is here."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building.analysis import answer
from winml.modelkit.building.analysis.reasons import Reason, read_reasons
from winml.modelkit.building.model_argument import model_argument
from winml.modelkit.building.optimize.support import refused
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
    from_json,
)
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.target import Target
from winml.modelkit.data import sizes
from winml.modelkit.data.sizes import Known
from winml.modelkit.ep import catalog, options
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.probing import Planned
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.knowledge import operators
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.limits import ask_timeout_s

SCHEMA = "winml/analyze/1"
PRELOAD = ("winml.modelkit.building.analysis.prepare",)
ASK_PRELOAD = ("winml.modelkit.building.analysis.ask",)

OnEvent = Callable[[dict[str, Any]], None]
Json = dict[str, Any]


@dataclass(frozen=True)
class AnalyzeRequest:
    """Everything the user decided."""

    model: str
    target: str | None = None
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


def analyze(request: AnalyzeRequest, on_event: OnEvent) -> Json:
    """Ask every target that is here, look up the others, and return the JSON object of the contract."""
    argument = model_argument(request.model, on_event, trust=request.trust.typing(request.ep_options))
    planned = _planned(request, argument.target)
    with Worker(preload=PRELOAD) as worker:
        on_event({"event": "reading", "name": argument.path.name})
        args = {
            "path": str(argument.path),
            "dims": request.dims,
            "targets": [(p.target.ep, p.target.device) for p in planned],
        }
        prepared = worker.call(
            "analysis.prepare", args, timeout_s=request.timeout_s, what=f"reading `{argument.path.name}`"
        )
        known = sizes.find(argument.path, request.dims, worker=worker)
        npu = any(plan.target.device == "npu" and plan.here is not None for plan in planned)
        if npu and not request.all_targets and not prepared["facts"]["compiled_for"]:
            known.require()
        asker = _Asker(prepared, argument.section, request, known)
        answered = []
        for number, plan in enumerate(planned):
            on_event({"event": "asking", "name": str(plan.target), "done": number, "total": len(planned)})
            answered.append(asker.about(plan))
            on_event({"event": "answered", "name": str(plan.target), "status": answered[-1]["status"]})
        _raise_if_invalid(answered)
        wanted = [plan.target for plan in planned]
        fusions = None if _no_fusions(request, prepared) else _fusions(worker, argument.path, wanted, request, on_event)
    return {
        "schema": SCHEMA,
        "ok": True,
        "model": request.name,
        "facts": prepared["facts"],
        "supported": all(target["status"] == "supported" for target in answered),
        "targets": answered,
        "fusions": fusions,
    }


def _raise_if_invalid(answered: list[Json]) -> None:
    """Raise when every runtime that was asked calls the model invalid; a single one may only be too old for it."""
    errors = [target["error"] for target in answered if target["source"]["kind"] == "asked"]
    if errors and all(error is not None and error["code"] == ModelFileError.code for error in errors):
        raise from_json(errors[0])


def check(result: Json) -> None:
    """Raise when a target does not support the whole model, with the result as details.

    A crash or a timeout is the command's own failure when nobody else could be asked.
    """
    if result["supported"]:
        return
    answered = result["targets"]
    broken = [target["error"] for target in answered if target["status"] == "failed"]
    if len(broken) == len(answered):
        raise from_json(broken[0], result)
    unknown = [f"`{t['target']}`" for t in answered if t["status"] == "unknown"]
    words = [f"`{t['target']}` {_short(t)}" for t in answered if t["status"] not in ("supported", "unknown")]
    if not words:
        raise UnavailableError(
            f"cannot tell: {', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not here, and nothing is known "
            "of the operators there",
            hint="ask where it is installed; `winml sys` shows how",
            details=result,
        )
    words += [f"unknown on {', '.join(unknown)}"] if unknown else []
    raise CheckFailed(f"not fully supported: {'; '.join(words)}", details=result)


def _short(target: Json) -> str:
    if target["status"] in ("refused", "failed"):
        return str(target["status"])
    numbers = [f"{target['counts'][s]} {s}" for s in answer.STATUSES[1:] if target["counts"][s]]
    return f"({', '.join(numbers)})"


def _planned(request: AnalyzeRequest, built_for: str | None) -> list[Planned]:
    if not request.all_targets:
        named = request.target or (built_for if request.ep is None and request.device is None else None)
        return [targets.plan(named, request.ep, request.device)]
    if request.target or request.ep or request.device:
        raise RequestError("`--all` cannot be combined with `--target`, `--ep` or `--device`")
    if request.ep_options:
        raise RequestError("`--ep-options` needs one target", hint="name it with `--target EP/DEVICE`")
    every = [Target(info.name, device) for info in catalog.TABLE for device in info.devices]
    return [targets.plan(f"{target.ep}/{target.device}", None, None) for target in every]


@dataclass(frozen=True)
class _Asker:
    """Asks targets about one prepared model."""

    prepared: Json
    section: SessionSection
    request: AnalyzeRequest
    known: Known
    """Sizes of open dimensions, which an NPU needs."""

    def about(self, plan: Planned) -> Json:
        """What is said of the model on one target; a failure of the EP is an answer."""
        if plan.here is None:
            assert plan.absent is not None
            return self._from_table(plan.target, plan.absent)
        section = self._section(plan.target)
        with Worker(preload=ASK_PRELOAD, python=plan.here.installed.python) as worker:
            try:
                said = self._ask(worker, plan, section)
            except (RunFailedError, ModelFileError) as error:
                return self._failed(plan.target, error, read_reasons(worker.log()), section)
            except EPUnavailableError as error:
                return self._from_table(plan.target, error)
            return self._asked(plan.target, said, read_reasons(worker.log()), section)

    def _section(self, target: Target) -> SessionSection:
        """How the session is opened: as the build says and then the user, with no size left open for an NPU.

        A build's EP options are for its own target, so `--all` leaves them out.
        """
        built_for = {} if self.request.all_targets else self.section.ep_options
        given = options.checked(target, {**built_for, **self.request.ep_options})
        fixed = {**self.section.fixed_dims, **self.prepared["axes"]}
        if target.device == "npu":
            fixed = {**self.known.dims, **fixed}
        return replace(self.section, ep_options=given, fixed_dims=fixed)

    def _ask(self, worker: Worker, plan: Planned, section: SessionSection) -> Json:
        assert plan.here is not None
        args = {
            "model": self.prepared["asked"],
            "ep": plan.target.ep,
            "device": plan.target.device,
            "simulated": plan.target.simulated,
            "distribution": plan.here.installed.package.distribution,
            "session": section.to_json(),
        }
        timeout_s = self.request.timeout_s or ask_timeout_s(Path(self.prepared["asked"]))
        said: Json = worker.call("analysis.ask", args, timeout_s=timeout_s, what=f"opening the model on {plan.target}")
        return said

    def _asked(self, target: Target, said: Json, reasons: list[Reason], section: SessionSection) -> Json:
        ep = catalog.BY_NAME[target.ep].full_name
        names = frozenset(name for name, _ in self.prepared["nodes"])
        placed = answer.placed_nodes(said["nodes"], reasons)
        nodes = [node for node in placed if not answer.is_added(node, names)]
        ops = answer.asked_ops(nodes, ep)
        source = {
            "kind": "asked",
            **said["environment"],
            "provider_options": said["provider_options"],
            "added_options": said["added_options"],
            "fixed_dims": section.fixed_dims,
            "sizes": self._sources(section),
        }
        return self._result(target, answer.verdict(ops), source, ops) | {
            "placement": answer.placement(placed, target, names),
            "left": answer.left_nodes(nodes, ep),
            "gone": answer.gone(self.prepared["nodes"], placed),
        }

    def _from_table(self, target: Target, absent: EPUnavailableError) -> Json:
        ops = answer.table_ops(self.prepared["facts"]["ops"], target)
        known = operators.table(target.ep, target.device)
        source = {"kind": "table" if known else "none", "table": known.source if known else None}
        return self._result(target, answer.verdict(ops), source, ops) | {"absent": absent.message}

    def _failed(self, target: Target, error: ModelkitError, reasons: list[Reason], section: SessionSection) -> Json:
        ops = answer.unknown_ops(self.prepared["facts"]["ops"], reasons)
        status = "refused" if isinstance(error, SessionError | PlacementError | ModelFileError) else "failed"
        source = {"kind": "asked", "fixed_dims": section.fixed_dims, "sizes": self._sources(section)}
        return self._result(target, status, source, ops) | {"error": self._without_copy(error)}

    def _sources(self, section: SessionSection) -> Json:
        """Where each size comes from that the session was opened with."""
        return {name: size.to_json() for name, size in self.known.sizes.items() if name in section.fixed_dims}

    def _without_copy(self, error: ModelkitError) -> Json:
        """The error with the user's file in place of the copy that was asked about."""
        value = error.to_json()
        return value | {"message": value["message"].replace(self.prepared["asked"], self.request.name)}

    def _result(self, target: Target, status: str, source: Json, ops: Sequence[answer.OpAnswer]) -> Json:
        return {
            **target.to_json(),
            "status": status,
            "source": source,
            "counts": answer.counts(ops),
            "ops": [op.to_json() for op in ops],
            "placement": None,
            "left": [],
            "gone": {},
            "hazards": [self._hazard(hazard, target) for hazard in self._hazards(target, ops)],
            "absent": None,
            "error": None,
        }

    def _hazards(self, target: Target, ops: Sequence[answer.OpAnswer]) -> list[Json]:
        """The hazards of the tables but those about operators that the EP itself says it takes."""
        supported = {op.op for op in ops if op.status == "supported"}
        found: list[Json] = self.prepared["hazards"][f"{target.ep}/{target.device}"]
        return [hazard for hazard in found if not hazard["ops"] or not supported.issuperset(hazard["ops"])]

    def _hazard(self, hazard: Json, target: Target) -> Json:
        if hazard["fix"] is None:
            return hazard
        if self.known.missing and "{dims}" in hazard["fix"]:
            # No command here: a size that nobody knows would be a guess.
            open_names = ", ".join(f"`{name}`" for name in self.known.missing)
            return hazard | {
                "fix": None,
                "message": f"{hazard['message']}; name the sizes of {open_names} with `--dim`",
            }
        dims = " ".join(f"--dim {shell_word(f'{name}={size.size}')}" for name, size in self.known.sizes.items())
        stem = re.sub(r"[^\w.-]", "_", Path(self.request.name).stem, flags=re.ASCII)
        fix = hazard["fix"].format(model=shell_word(self.request.name), stem=stem, target=target, dims=dims)
        return hazard | {"fix": fix}


def _no_fusions(request: AnalyzeRequest, prepared: Json) -> bool:
    return not request.fusions or bool(prepared["facts"]["compiled_for"])


def _fusions(worker: Worker, path: Path, wanted: Sequence[Target], request: AnalyzeRequest, on_event: OnEvent) -> Json:
    """The passes of `winml optimize` that would change the model, found by running each one alone."""
    try:
        found = worker.call(
            "optimize.candidates",
            {"model": str(path), "passes": None},
            timeout_s=request.timeout_s or ask_timeout_s(path),
            on_event=on_event,
            what="trying the optimizer's passes",
        )
    except RunFailedError as error:
        return {"tried": 0, "passes": [], "error": error.to_json()}
    passes = [_fusion(row, wanted) for row in found["passes"] if row["status"] != "no change"]
    return {"tried": len(found["passes"]), "passes": passes, "error": None}


def _fusion(row: Json, wanted: Sequence[Target]) -> Json:
    """A pass with the targets that refuse what it makes."""
    made = [op for op, count in row["ops_delta"].items() if count > 0]
    kept = ("name", "what", "status", "note", "after", "nodes_delta", "ops_delta", "seconds")
    return {key: row[key] for key in kept} | {"not_for": [str(t) for t in wanted if refused(t, made)]}
