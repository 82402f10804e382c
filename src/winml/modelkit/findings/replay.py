"""`winml kb replay`: runs a finding's experiment on this machine and writes the outcome."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from winml.modelkit import __version__
from winml.modelkit.building.analysis.result import EPAnswer
from winml.modelkit.core.build_folder import CONFIG, MODEL
from winml.modelkit.core.config import BuildConfig
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import EPVersion, RuntimeVersion
from winml.modelkit.core.errors import CheckFailed, RequestError, RunFailedError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.evidence import (
    DistanceEvidence,
    ErrorEvidence,
    Evidence,
    NodesEvidence,
    Opened,
    Openings,
    OutputDistances,
    RawSamples,
    Refused,
    SamplesEvidence,
)
from winml.modelkit.core.finding import Expectation, Experiment, ExperimentArm
from winml.modelkit.core.measurement import SessionSection, section_from_json
from winml.modelkit.core.placement import CPU
from winml.modelkit.core.values import read, to_json
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.targets import Resolved
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.findings.result import KbReplay
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.findings import Knowledge, ReplayOutcome, experiment_digest
from winml.modelkit.measuring.compare import compare
from winml.modelkit.measuring.compare_arms import CompareRequest
from winml.modelkit.measuring.reports import Distances, Probe
from winml.modelkit.measuring.stored import StoredSamples
from winml.modelkit.session.arm import ArmArguments
from winml.modelkit.store import atomic
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.scratch import ScratchFolder

TIMEOUT_S = 120.0


@dataclass(frozen=True, kw_only=True)
class ExperimentResult:
    """The result of an experiment: whether the expectation was met, why, and the data."""

    met: bool | None
    """None when it could not be decided."""
    reason: str
    data: Openings | RawSamples | OutputDistances
    versions: Mapping[str, str]
    simulated: bool


@dataclass(frozen=True)
class ReplayArm:
    """An arm of an experiment, with its model on disk."""

    folder: Path
    resolved: Resolved
    session: SessionSection
    trust: Trust

    @property
    def arguments(self) -> ArmArguments:
        target = self.resolved.target
        return ArmArguments(
            model=str(self.folder / MODEL),
            ep=target.ep,
            device=target.device,
            simulated=target.simulated,
            session=self.session,
            distribution=self.resolved.installed.package.distribution,
        )


def _make_arm(arm: ExperimentArm, default: str, folder: Path, worker: Worker, trust: Trust, source: str) -> ReplayArm:
    """Write the model and the session section as a build folder."""
    resolved = targets.resolve(arm.target or default, None, None)
    try:
        session = section_from_json(arm.session, trust.gate(source))
    except RequestError as error:
        raise RequestError(f"`{source}`: {error.message}", hint=error.hint) from error
    folder.mkdir()
    args = {"builder": arm.builder, "parameters": to_json(arm.parameters), "path": str(folder / MODEL)}
    worker.call("knowledge.model", args, timeout_s=TIMEOUT_S, what=f"making the model `{arm.builder}`")
    (folder / CONFIG).write_text(
        json.dumps(to_json(BuildConfig(target=str(resolved.target), session=session))), encoding="utf-8", newline="\n"
    )
    return ReplayArm(folder, resolved, session, trust)


def _versions(runtime: RuntimeVersion, ep: EPVersion) -> dict[str, str]:
    found = {runtime.name: runtime.version}
    return found if ep.version is None or ep.name == "cpu" else {**found, ep.name: ep.version}


def _open(arm: ReplayArm) -> tuple[Opened | Refused, dict[str, str]]:
    """Where nodes go or why the model cannot be opened, with versions; in a separate process, which may crash."""
    with Worker(python=arm.resolved.installed.python) as worker:
        try:
            answer = worker.ask(EPAnswer, "analysis.ask", arm.arguments, timeout_s=TIMEOUT_S, what="opening the model")
        except RunFailedError as error:
            return Refused(message=error.message.replace(f"{arm.folder}{os.sep}", "")), {}
    opened = Opened(
        nodes=Counter(node.ep for node in answer.nodes),
        on_cpu=Counter(node.op for node in answer.nodes if node.ep == CPU),
        partitions=len({node.partition for node in answer.nodes if node.partition is not None}),
    )
    return opened, _versions(answer.environment.runtime, answer.environment.ep)


def _describe_opening(found: Opened | Refused) -> str:
    if isinstance(found, Refused):
        return "it cannot be opened"
    ops = ", ".join(f"{op} x{n}" for op, n in sorted(found.on_cpu.items()))
    return f"{ops or 'nothing'} on the CPU, {found.partitions} partitions"


def _is_expected(found: Opened | Refused, on_cpu: tuple[str, ...] | None, partitions: int | None) -> bool:
    if isinstance(found, Refused):
        return False
    right = on_cpu is None or set(found.on_cpu) == set(on_cpu)
    return right and (partitions is None or found.partitions == partitions)


def _open_both(base: ReplayArm, candidate: ReplayArm, expect: Expectation, *, fails: bool) -> ExperimentResult:
    """Where the nodes of both arms go or, for a failure, whether only the base opens."""
    of_base, versions = _open(base)
    of_candidate, _ = _open(candidate)
    if fails:
        refused = isinstance(of_candidate, Refused)
        message = of_candidate.message if isinstance(of_candidate, Refused) else ""
        opens = isinstance(of_base, Opened)
        met = opens and refused and (expect.candidate_fails_with or "") in message
        words = f"the candidate is refused: {message}" if refused else "the candidate opens"
        reason = f"the base {'opens' if opens else 'is refused'}; {words}"
    else:
        met = _is_expected(of_base, expect.base_on_cpu, None) and _is_expected(
            of_candidate, expect.candidate_on_cpu, expect.candidate_partitions
        )
        reason = f"base: {_describe_opening(of_base)}; candidate: {_describe_opening(of_candidate)}"
    return ExperimentResult(
        met=met,
        reason=reason,
        data=Openings(base=of_base, candidate=of_candidate),
        versions=versions,
        simulated=base.resolved.target.simulated or candidate.resolved.target.simulated,
    )


def _measure(base: ReplayArm, candidate: ReplayArm, expect: Expectation, on_event: OnEvent) -> ExperimentResult:
    """A comparison as by `winml compare`, which refuses simulated devices."""
    result = compare(
        CompareRequest(
            (str(base.folder), str(candidate.folder)),
            (str(base.resolved.target),),
            threads=1,
            allow_different=True,
            trust=base.trust,
        ),
        on_event,
    )
    (compared,) = result.candidates
    measurement = compared.measurement
    if measurement is not None:
        # The arms are named by their role in the experiment instead of by temporary files.
        first, second = measurement.arms
        named = (replace(first, artifact="base"), replace(second, artifact="candidate"))
        measurement = replace(measurement, arms=named)
    samples = StoredSamples(
        verdict=compared.verdict,
        measurement=measurement,
        calibration=compared.calibration,
        calibrations=result.calibrations,
        tests=compared.tests,
    )
    limit = expect.gain_at_least_pct or 0.0
    gain, interval = compared.verdict.gain_pct, compared.verdict.interval_pct
    met = None if interval is None else True if interval[0] >= limit else False if interval[1] < limit else None
    shown = "nothing was measured" if interval is None else f"{gain:+.1f} % ({interval[0]:+.1f} … {interval[1]:+.1f})"
    return ExperimentResult(
        met=met,
        reason=f"time saved {shown}, expected at least {limit:g} %: {compared.verdict.verdict}",
        data=read(RawSamples, to_json(samples)),
        versions=_versions(result.environment.runtime, result.environment.ep),
        simulated=base.resolved.target.simulated,
    )


def _compare_outputs(base: ReplayArm, candidate: ReplayArm, expect: Expectation) -> ExperimentResult:
    """The distance between the outputs of the two arms on the same inputs."""
    probes: dict[str, Probe] = {}
    saved: dict[str, str] = {}
    for name, arm in (("base", base), ("candidate", candidate)):
        saved[name] = str(arm.folder / "outputs.npz")
        with Worker(python=arm.resolved.installed.python) as worker:
            args = {"arm": arm.arguments, "runs": 1, "save": saved[name]}
            probes[name] = worker.ask(Probe, "bench.probe", args, timeout_s=TIMEOUT_S, what=f"running the {name}")
    with Worker() as worker:
        outputs = worker.ask(Distances, "bench.distance", saved).outputs
    environment = probes["candidate"].environment
    result = ExperimentResult(
        met=None,
        reason="the outputs cannot be compared",
        data=OutputDistances(
            outputs=outputs, placement={name: to_json(probe.placement) for name, probe in probes.items()}
        ),
        versions=_versions(environment.runtime, environment.ep),
        simulated=candidate.resolved.target.simulated,
    )
    worst = min(outputs, key=lambda o: -1.0 if o.cosine is None else o.cosine)
    if worst.cosine is None or worst.relative is None:
        return result
    met = (expect.cosine_at_most is None or worst.cosine <= expect.cosine_at_most) and (
        expect.relative_error_at_least is None or worst.relative >= expect.relative_error_at_least
    )
    reason = f"cosine {worst.cosine:.6f}, relative error {worst.relative:.2g}"
    return replace(result, met=met, reason=reason)


def run_experiment(
    experiment: Experiment, on_event: OnEvent, *, trust: Trust = NOTHING, source: str = "experiment"
) -> ExperimentResult:
    """Make and run both arms; a finding may set the options that documents may set, and trusted ones."""
    with ScratchFolder("winml-replay-") as folder:
        with Worker(preload=("winml.modelkit.knowledge.experiments.make",)) as worker:
            base = _make_arm(experiment.base, experiment.target, folder / "base", worker, trust, source)
            candidate = _make_arm(experiment.candidate, experiment.target, folder / "candidate", worker, trust, source)
        match experiment.measures:
            case "placement" | "failure":
                return _open_both(base, candidate, experiment.expect, fails=experiment.measures == "failure")
            case "latency":
                return _measure(base, candidate, experiment.expect, on_event)
            case "accuracy":
                return _compare_outputs(base, candidate, experiment.expect)


def _make_evidence(experiment: Experiment, result: ExperimentResult) -> Evidence:
    common: dict[str, Any] = {
        "kind": experiment.measures,
        "run": f"replay {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "shows": result.reason,
        "speaks": "against" if result.met is False else "for",
        "model": f"{experiment.base.builder} against {experiment.candidate.builder}",
        "simulated": result.simulated,
        "versions": result.versions,
    }
    match result.data:
        case RawSamples():
            return SamplesEvidence(data=result.data, **common)
        case OutputDistances():
            return DistanceEvidence(data=result.data, **common)
        case Openings():
            form = ErrorEvidence if experiment.measures == "failure" else NodesEvidence
            return form(data=result.data, **common)


def replay(knowledge: Knowledge, name: str, folder: Path, on_event: OnEvent, *, trust: Trust = NOTHING) -> KbReplay:
    """Run the experiment of a finding and keep the outcome; raises CheckFailed when it does not hold."""
    finding = knowledge.entry(name).finding
    experiment = finding.experiment
    if experiment is None:
        able = ", ".join(f"`{one.finding.id}`" for one in knowledge if one.finding.experiment is not None)
        raise RequestError(f"`{finding.id}` has no experiment to replay", hint=f"these have one: {able}")
    result = run_experiment(experiment, on_event, trust=trust, source=finding.id)
    outcome = ReplayOutcome(
        finding=finding.id,
        answer="unclear" if result.met is None else "holds" if result.met else "does not hold",
        reason=result.reason,
        experiment=experiment_digest(experiment),
        winml=__version__,
        evidence=_make_evidence(experiment, result),
    )
    stamp = outcome.evidence.run.rpartition(" ")[2].replace(":", "").replace("-", "")
    path = folder / "outcomes" / f"{finding.id}-{stamp}.json"
    atomic.write_bytes(path, files.text(outcome))
    done = KbReplay(file=str(path), title=finding.title, outcome=outcome)
    if outcome.answer == "does not hold":
        raise CheckFailed(f"`{finding.id}` does not hold here: {outcome.reason}", result=done)
    if outcome.answer == "unclear":
        raise RunFailedError(f"`{finding.id}` could not be decided here: {outcome.reason}", result=done)
    return done
