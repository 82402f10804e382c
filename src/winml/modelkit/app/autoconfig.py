"""`winml autoconfig`: the fastest config of a model that is still accurate on a target, and the proof."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from winml.modelkit import __version__
from winml.modelkit.app import autoconfig_result, search_space, targets
from winml.modelkit.app import config as configs
from winml.modelkit.app.autoconfig_files import JOURNAL, SearchFolder
from winml.modelkit.app.build import BuildRequest, build, source_of
from winml.modelkit.app.config import ConfigRequest
from winml.modelkit.app.models import model_argument
from winml.modelkit.app.search_gate import MIN_AGREEMENT, Gate, GateRequest
from winml.modelkit.app.search_reuse import reused
from winml.modelkit.app.search_tools import Job, Objective, Workbench, completed
from winml.modelkit.bench.protocols import PROTOCOLS
from winml.modelkit.core import sections
from winml.modelkit.core.config import RANDOM, DataSection, config_from_json
from winml.modelkit.core.errors import Interrupted, ModelkitError, RequestError, RunFailedError, UnavailableError
from winml.modelkit.ep.targets import Resolved
from winml.modelkit.knowledge.findings import Knowledge
from winml.modelkit.knowledge.presets import Preset
from winml.modelkit.knowledge.presets import preset as preset_of
from winml.modelkit.pipeline.artifact import Source
from winml.modelkit.search.guards import Guarded
from winml.modelkit.search.insight import Insight
from winml.modelkit.search.strategy import Limits, Plan, champion
from winml.modelkit.search.study import Study
from winml.modelkit.search.trial import Yardstick
from winml.modelkit.store.journal import Journal
from winml.modelkit.worker.client import Worker

AGREEMENT_SAMPLES = 64
CALIBRATION_SAMPLES = 128
CANDIDATES_TIMEOUT_S = 300.0

OnEvent = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class AutoconfigRequest:
    """Everything the user decided."""

    model: str
    output: str
    targets: tuple[str | None, ...] = (None,)
    ep: str | None = None
    device: str | None = None
    objective: str | None = None
    data: DataSection | None = None
    """Labelled data for the gate."""
    task: str | None = None
    min_metric: float | None = None
    max_drop: float | None = None
    min_agreement: float = MIN_AGREEMENT
    judge: str = "value"
    calibration: DataSection | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    threads: int | None = None
    ep_options: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    resume: bool = False
    space: str | None = None
    preset: str | None = None
    only: tuple[str, ...] = ()
    reuse: str | None = None
    knowledge: str | None = None
    raise_priority: bool = True
    calibrate: bool = True
    seed: int = 0


@dataclass(frozen=True)
class Prepared:
    """What a search starts from."""

    request: AutoconfigRequest
    resolved: tuple[Resolved, ...]
    objective: Objective
    source: Source
    facts: Mapping[str, Any]
    base: Mapping[str, Any]
    calibration: DataSection | None
    gate: GateRequest
    insight: Insight
    notes: tuple[str, ...]

    @property
    def identity(self) -> dict[str, Any]:
        """What a journal belongs to; a search with another one cannot go on in its folder."""
        return {
            "model": self.source.artifact.digest,
            "targets": [r.target.to_json() for r in self.resolved],
            "objective": self.objective,
            "baseline": {**self.base, "model": None},
            "calibration": None if self.calibration is None else self.calibration.digest,
            "gate": self.gate.to_json() | {"data": None},
            "knobs": {knob.name: list(knob.names) for knob in self.insight.space.knobs},
            "inputs": self.request.inputs,
        }


def autoconfig(request: AutoconfigRequest, on_event: OnEvent) -> dict[str, Any]:
    """Search and return the JSON object of the contract; a search that ends early is raised with it as details."""
    _check(request)
    folder = SearchFolder(Path(request.output).absolute(), resume=request.resume)
    with Journal(folder.path / JOURNAL) as journal:
        records = list(journal.replay.records)
        if records and not request.resume:
            raise RequestError(
                f"`{folder.path}` holds a search", hint="go on with `--resume`, or name a new folder with `-o`"
            )
        prepared = _prepared(request, on_event)
        records = _opened(journal, records, prepared)
        on_event({"event": "insight", "insight": prepared.insight, "notes": prepared.notes})
        with tempfile.TemporaryDirectory(prefix="winml-autoconfig-") as work:
            return _searched(prepared, folder, journal, records, Path(work), on_event)


def _check(request: AutoconfigRequest) -> None:
    if (request.min_metric is not None or request.max_drop is not None) and request.data is None:
        raise RequestError("a limit for the metric needs labelled data", hint="name them with `--data`")
    if request.only and request.preset is None:
        raise RequestError("`--only` picks hypotheses of a preset", hint="name it with `--preset`")
    if request.preset is not None and request.space is not None:
        raise RequestError("`--preset` and `--space` exclude each other")
    if len(set(request.targets)) != len(request.targets):
        raise RequestError("`--target` names a target twice")


def _opened(journal: Journal, records: list[dict[str, Any]], prepared: Prepared) -> list[dict[str, Any]]:
    """The records to go on from; a new journal is told what it belongs to, an old one must belong to this search."""
    if not records:
        first = {"kind": "study", "winml": __version__, "identity": prepared.identity}
        made = [first, *reused(prepared.request.reuse, prepared.identity, prepared.insight.space)]
        for record in made:
            journal.append(record)
        return made
    study = records[0]
    if study.get("kind") != "study" or "identity" not in study:
        raise RequestError(f"`{journal.path}` is not the journal of a search")
    if study["winml"] != __version__:
        raise RequestError(f"the journal is of winml {study['winml']}, this is {__version__}", hint="use a new folder")
    differing = sorted(key for key, value in prepared.identity.items() if study["identity"].get(key) != value)
    if differing:
        raise RequestError(
            f"the journal in `{journal.path.parent}` is of another search: {', '.join(differing)} differ",
            hint="give the same options as before, or use a new folder",
        )
    return records


def _objective(request: AutoconfigRequest, resolved: Resolved) -> tuple[Objective, tuple[str, ...]]:
    target = resolved.target
    word = request.objective or ("placement" if target.simulated else "latency")
    if word == "latency" and target.simulated:
        raise UnavailableError(
            f"`{target}` is simulated here: its times say nothing about a device, so there is no latency verdict",
            hint="search for `--objective placement` or `size` here, and for latency where the device is",
        )
    if word == "placement" and target.ep == "cpu":
        raise RequestError("every node is placed on the CPU there", hint="search for `--objective latency` or `size`")
    if not target.simulated or request.objective is not None:
        return word, ()  # type: ignore[return-value]  # the option has these choices
    note = f"`{target}` is simulated here: searched for placement, then size; times there say nothing about a device"
    return "placement", (note,)


def _prepared(request: AutoconfigRequest, on_event: OnEvent) -> Prepared:
    resolved = tuple(targets.resolve(target, request.ep, request.device) for target in request.targets)
    for one in resolved:
        on_event({"event": "target", "target": one.target})
    objective, notes = _objective(request, resolved[0])
    if any(r.target.simulated for r in resolved) and len(resolved) > 1:
        raise UnavailableError("a simulated target cannot be compared with another one", hint="search on it alone")
    model = model_argument(request.model).path.absolute()
    with Worker(preload=configs.PRELOAD) as worker:
        preset = None if request.preset is None else preset_of(request.preset)
        calibration, more = _calibration(request, model, worker)
        gate, gate_notes = _gate(request, calibration, model, worker)
        base = _base(request, resolved[0], preset, calibration, model, worker)
        source = source_of(config_from_json(base), worker)
        facts = worker.call("graph.describe", {"path": str(model), "fingerprint": False}, what="reading the model")
        insight = _insight(request, resolved, facts["facts"], base, calibration, preset, model, worker, on_event)
    return Prepared(
        request, resolved, objective, source, facts["facts"], base, calibration, gate, insight,
        (*notes, *more, *gate_notes),
    )  # fmt: skip


def _calibration(request: AutoconfigRequest, model: Path, worker: Worker) -> tuple[DataSection | None, tuple[str, ...]]:
    """The data of static quantization: those named, or some of the labelled ones, which is told."""
    notes: tuple[str, ...] = ()
    data = request.calibration
    if data is None and request.data is not None:
        data = replace(request.data, limit=CALIBRATION_SAMPLES)
        notes = (
            f"calibrated on {CALIBRATION_SAMPLES} of the samples that the gate judges by; "
            "name others with `--calibration` for an unbiased accuracy",
        )
    if data is None:
        return None, ()
    if data.limit is None:
        data = replace(data, limit=CALIBRATION_SAMPLES)
    return configs.described(data, model, worker), notes


def _gate(
    request: AutoconfigRequest, calibration: DataSection | None, model: Path, worker: Worker
) -> tuple[GateRequest, tuple[str, ...]]:
    """Labelled data when they are given; otherwise agreement with the baseline, on the best inputs there are."""
    labelled = request.data is not None
    data = request.data or replace(calibration or DataSection(RANDOM), limit=AGREEMENT_SAMPLES, digest=None)
    found = configs.described(data, model, worker)
    gate = GateRequest(
        replace(found, digest=None),
        request.task if labelled else "outputs",
        request.min_metric,
        request.max_drop,
        min_agreement=request.min_agreement,
        judge=request.judge,
        digest=found.digest,
    )
    return gate, () if labelled else (gate.words(),)


def _base(
    request: AutoconfigRequest,
    resolved: Resolved,
    preset: Preset | None,
    calibration: DataSection | None,
    model: Path,
    worker: Worker,
) -> dict[str, Any]:
    """The config of the baseline: the model as it is, or the first hypothesis of a preset."""
    made = configs.make(
        ConfigRequest(
            model=str(model),
            target=str(resolved.target),
            precision="fp32" if preset is None else preset.precision,
            data=calibration,
            optimize=preset is not None,
            opset=None if preset is None else preset.opset,
            dims=request.inputs.get("dims", {}) if resolved.target.device == "npu" else {},
            threads=request.threads,
            ep_options=request.ep_options,
        ),
        worker,
    )
    value = made.config.to_json()
    if value["quantize"] is not None:
        value["quantize"]["calibration"] = None  # given to every static config when it is built
    return value


def _insight(
    request: AutoconfigRequest,
    resolved: tuple[Resolved, ...],
    facts: Mapping[str, Any],
    base: Mapping[str, Any],
    calibration: DataSection | None,
    preset: Preset | None,
    model: Path,
    worker: Worker,
    on_event: OnEvent,
) -> Insight:
    kinds = tuple(r.target for r in resolved)
    if preset is None:
        space = search_space.whole(base, kinds, request.space)
        found = _candidates(space, model, worker, on_event)
    else:
        space, found = search_space.of_preset(base, preset, request.only), {}
    knowledge = Knowledge(None if request.knowledge is None else Path(request.knowledge))
    return search_space.known_before(
        space,
        target=kinds[0],
        facts=facts,
        candidates=found,
        advice=search_space.advice_for(knowledge, facts, kinds[0], _versions(resolved[0])),
        missing={} if calibration is not None else {"data": search_space.NO_DATA},
        preset=preset,
    )


def _candidates(space: Any, model: Path, worker: Worker, on_event: OnEvent) -> dict[str, Mapping[str, Any]]:
    """What every pass of the space alone does to the model."""
    from winml.modelkit.stages.optimize.knobs import single_pass

    names = [name for knob in space.knobs if (name := single_pass(knob.name)) is not None]
    if not names:
        return {}
    on_event({"event": "candidates"})
    args = {"model": str(model), "passes": names}
    answer = worker.call("optimize.candidates", args, timeout_s=CANDIDATES_TIMEOUT_S, what="trying passes")
    return {row["name"]: row for row in answer["passes"]}


def _versions(resolved: Resolved) -> dict[str, str]:
    """Versions of the packages here, by the names findings use."""
    found: dict[str, str] = {}
    for name, distribution in (
        ("onnxruntime", "onnxruntime"),
        (resolved.target.ep, resolved.installed.package.distribution),
    ):
        try:
            found[name] = version(distribution)
        except PackageNotFoundError:
            continue  # in an environment of its own; what is not known is not compared
    return found


def _searched(
    prepared: Prepared,
    folder: SearchFolder,
    journal: Journal,
    records: list[dict[str, Any]],
    work: Path,
    on_event: OnEvent,
) -> dict[str, Any]:
    request, insight = prepared.request, prepared.insight
    device = prepared.resolved[0].target.device
    plan = Plan(
        insight.space,
        Yardstick(PROTOCOLS[device]),
        priority=insight.priority,
        allowed=insight.allowed,
        limits=request.limits,
        rounds=PROTOCOLS[device].first_look,
    )
    gate = Gate(prepared.gate, prepared.source.path.parent, work)
    bench = Workbench(_job(prepared), gate, work, keep=folder.keep, on_event=on_event)
    study = Study(
        plan, Guarded(bench), append=journal.append, records=records, because=insight.because, on_event=on_event
    )

    def so_far(ended: str | None) -> dict[str, Any]:
        return autoconfig_result.result_of(prepared, study, bench.environment, folder, ended)

    study.watch(lambda: folder.derive(autoconfig_result.table(study)))
    try:
        ended = study.run()
        _enough_for_one(study, ended)
        result = so_far(ended)
        _deliver(result, prepared, study, folder, on_event)
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; go on with `--resume`", details=_kept(so_far, folder)) from error
    except ModelkitError as error:
        error.details |= _kept(so_far, folder)
        raise
    finally:
        bench.close()
    autoconfig_result.raise_for(result)
    return result


def _kept(so_far: Callable[[str | None], dict[str, Any]], folder: SearchFolder) -> dict[str, Any]:
    """What there is of a search that did not end, on disk and for the caller."""
    result = so_far(None)
    if result["trials"]:
        folder.report(result)
    return {name: value for name, value in result.items() if name not in ("schema", "ok")}


def _job(prepared: Prepared) -> Job:
    request = prepared.request
    return Job(
        source=prepared.source,
        targets={str(r.target): r for r in prepared.resolved},
        baseline=prepared.base,
        calibration=None if prepared.calibration is None else sections.plain(prepared.calibration),
        inputs=request.inputs,
        objective=prepared.objective,
        protocol=PROTOCOLS[prepared.resolved[0].target.device],
        raise_priority=request.raise_priority,
        calibrate=request.calibrate,
        seed=request.seed,
        build_timeout_s=None if math.isinf(request.limits.budget_s) else request.limits.budget_s,
    )


def _enough_for_one(study: Study, ended: str) -> None:
    """Raise when the budget was too small for a single verdict."""
    if len(study.state.trials) > 1 or not ended.startswith("the budget"):
        return
    from winml.modelkit.search.strategy import reserve_s

    needed = study.state.seconds + reserve_s(study.state, study.plan)
    raise RequestError(
        f"a budget of {study.plan.limits.budget_s:.0f} s is too small for one verdict: about {needed:.0f} s are needed",
        hint=f"go on with `--resume --budget {math.ceil(needed * 2 / 60)}m`",
    )


def _deliver(result: dict[str, Any], prepared: Prepared, study: Study, folder: SearchFolder, on_event: OnEvent) -> None:
    """The champion's build folder, the reports and the drafts of findings."""
    best = champion(study.state, study.plan)
    config = completed(
        study.plan.space.config(best.choice),
        None if prepared.calibration is None else sections.plain(prepared.calibration),
    )
    named = replace(config, model=str(prepared.source.path))
    made = build(BuildRequest(config=named, output=str(folder.champion), overwrite=True), on_event)
    if made["artifact"]["digest"] != best.facts["artifact"]["digest"]:
        raise RunFailedError(
            f"the champion was rebuilt with another digest: {made['artifact']['digest']}, "
            f"measured was {best.facts['artifact']['digest']}",
            hint="a stage is not deterministic on this machine; what was measured is in the journal",
        )
    result["champion"] |= {"folder": str(folder.champion), "digest": made["artifact"]["digest"]}
    result["drafts"] = folder.drafts(result, prepared.objective)
    folder.report(result)
