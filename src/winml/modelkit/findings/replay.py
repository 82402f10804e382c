"""`winml kb replay`: runs a finding's experiment on this machine and writes what it came to beside the finding."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from winml.modelkit import __version__
from winml.modelkit.core.build_folder import CONFIG, MODEL
from winml.modelkit.core.config import BuildConfig
from winml.modelkit.core.errors import CheckFailed, RequestError, RunFailedError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.finding import Evidence, Expectation, Experiment, ExperimentArm, Finding
from winml.modelkit.core.measurement import Measurement, SessionSection, section_from_json
from winml.modelkit.core.values import to_json
from winml.modelkit.ep import catalog
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.targets import Resolved
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.findings import OUTCOME_SCHEMA, Knowledge, Outcome, experiment_digest
from winml.modelkit.measuring.compare import compare
from winml.modelkit.measuring.compare_arms import CompareRequest
from winml.modelkit.measuring.stored import StoredSamples
from winml.modelkit.store import atomic
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.scratch import ScratchFolder

TIMEOUT_S = 120.0
CPU = catalog.BY_NAME["cpu"].full_name


@dataclass(frozen=True)
class Seen:
    """What an experiment came to: whether the expectation was met, why, and everything that was seen."""

    met: bool | None
    """None when it could not be decided."""
    reason: str
    form: str
    data: dict[str, Any]
    versions: dict[str, str]
    simulated: bool


@dataclass(frozen=True)
class Arm:
    """An arm of an experiment with its model written."""

    folder: Path
    resolved: Resolved
    session: SessionSection
    trust: Trust

    @property
    def arguments(self) -> dict[str, Any]:
        target = self.resolved.target
        return {
            "model": str(self.folder / MODEL),
            "ep": target.ep,
            "device": target.device,
            "simulated": target.simulated,
            "session": to_json(self.session),
            "distribution": self.resolved.installed.package.distribution,
        }


def _make(arm: ExperimentArm, default: str, folder: Path, worker: Worker, trust: Trust, source: str) -> Arm:
    """Write the model and the session section as a build folder."""
    resolved = targets.resolve(arm.target or default, None, None)
    try:
        session = section_from_json(arm.session, trust.gate(source))
    except RequestError as error:
        raise RequestError(f"`{source}`: {error.message}", hint=error.hint) from error
    folder.mkdir()
    args = {"builder": arm.builder, "parameters": arm.parameters, "path": str(folder / MODEL)}
    worker.call("knowledge.model", args, timeout_s=TIMEOUT_S, what=f"making the model `{arm.builder}`")
    (folder / CONFIG).write_text(
        json.dumps(to_json(BuildConfig(target=str(resolved.target), session=session))), encoding="utf-8", newline="\n"
    )
    return Arm(folder, resolved, session, trust)


def _ask(arm: Arm) -> dict[str, Any]:
    """Where the nodes go, or why the model cannot be opened; in a process of its own, for it may crash."""
    with Worker(python=arm.resolved.installed.python) as worker:
        try:
            answer = worker.call("analysis.ask", arm.arguments, timeout_s=TIMEOUT_S, what="opening the model")
        except RunFailedError as error:
            return {"opens": False, "message": error.message.replace(f"{arm.folder}{os.sep}", ""), "environment": None}
    nodes = answer["nodes"]
    return {
        "opens": True,
        "nodes": dict(Counter(n["ep"] for n in nodes)),
        "on_cpu": dict(Counter(n["op"] for n in nodes if n["ep"] == CPU)),
        "partitions": len({n["partition"] for n in nodes if n["partition"] is not None}),
        "environment": answer["environment"],
    }


def _versions(environment: dict[str, Any] | None) -> dict[str, str]:
    if environment is None:
        return {}
    runtime, ep = environment["runtime"], environment["ep"]
    found = {runtime["name"]: runtime["version"]}
    return found if ep["version"] is None or ep["name"] == "cpu" else {**found, ep["name"]: ep["version"]}


def _asked(base: Arm, candidate: Arm, form: str, met: bool, reason: str, answers: dict[str, Any]) -> Seen:
    environment = answers["base"].pop("environment")
    answers["candidate"].pop("environment")
    simulated = base.resolved.target.simulated or candidate.resolved.target.simulated
    return Seen(met, reason, form, answers, _versions(environment), simulated)


def _ops(found: dict[str, Any]) -> str:
    if not found["opens"]:
        return "it cannot be opened"
    ops = ", ".join(f"{op} x{n}" for op, n in sorted(found["on_cpu"].items()))
    return f"{ops or 'nothing'} on the CPU, {found['partitions']} partitions"


def _as_expected(found: dict[str, Any], on_cpu: tuple[str, ...] | None, partitions: int | None) -> bool:
    if not found["opens"]:
        return False
    right = on_cpu is None or set(found["on_cpu"]) == set(on_cpu)
    return right and (partitions is None or found["partitions"] == partitions)


def _placement(base: Arm, candidate: Arm, expect: Expectation, on_event: OnEvent) -> Seen:
    answers = {"base": _ask(base), "candidate": _ask(candidate)}
    met = _as_expected(answers["base"], expect.base_on_cpu, None) and _as_expected(
        answers["candidate"], expect.candidate_on_cpu, expect.candidate_partitions
    )
    reason = f"base: {_ops(answers['base'])}; candidate: {_ops(answers['candidate'])}"
    return _asked(base, candidate, "nodes", met, reason, answers)


def _failure(base: Arm, candidate: Arm, expect: Expectation, on_event: OnEvent) -> Seen:
    answers = {"base": _ask(base), "candidate": _ask(candidate)}
    fails = not answers["candidate"]["opens"]
    said = answers["candidate"].get("message", "")
    met = answers["base"]["opens"] and fails and (expect.candidate_fails_with or "") in said
    words = f"the candidate is refused: {said}" if fails else "the candidate opens"
    reason = f"the base {'opens' if answers['base']['opens'] else 'is refused'}; {words}"
    return _asked(base, candidate, "error", met, reason, answers)


def _latency(base: Arm, candidate: Arm, expect: Expectation, on_event: OnEvent) -> Seen:
    """A comparison by the machinery of `winml compare`, which refuses simulated devices."""
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
    entry = result.candidates[0]
    verdict = entry.verdict
    limit = expect.gain_at_least_pct or 0.0
    gain, interval = verdict.gain_pct, verdict.interval_pct
    data: dict[str, Any] = to_json(
        StoredSamples(
            verdict=verdict,
            measurement=_without_paths(entry.measurement),
            calibration=entry.calibration,
            calibrations=result.calibrations,
            tests=entry.tests,
        )
    )
    met = None if interval is None else True if interval[0] >= limit else False if interval[1] < limit else None
    shown = "nothing was measured" if interval is None else f"{gain:+.1f} % ({interval[0]:+.1f} … {interval[1]:+.1f})"
    reason = f"time saved {shown}, expected at least {limit:g} %: {verdict.verdict}"
    return Seen(met, reason, "samples", data, _versions(to_json(result.environment)), base.resolved.target.simulated)


def _without_paths(measurement: Measurement | None) -> Measurement | None:
    """The measurement with its arms called by their part in the experiment instead of by temporary files."""
    if measurement is None:
        return None
    base, candidate = measurement.arms
    return replace(measurement, arms=(replace(base, artifact="base"), replace(candidate, artifact="candidate")))


def _accuracy(base: Arm, candidate: Arm, expect: Expectation, on_event: OnEvent) -> Seen:
    """How far the outputs of the two arms are apart on the same inputs."""
    probes = {}
    for name, arm in (("base", base), ("candidate", candidate)):
        with Worker(python=arm.resolved.installed.python) as worker:
            args = {"arm": {**arm.arguments, "inputs": {}}, "runs": 1, "save": str(arm.folder / "outputs.npz")}
            probes[name] = worker.call("bench.probe", args, timeout_s=TIMEOUT_S, what=f"running the {name}")
    with Worker() as worker:
        args = {name: str(arm.folder / "outputs.npz") for name, arm in (("base", base), ("candidate", candidate))}
        outputs = worker.call("bench.distance", args)["outputs"]
    data = {"outputs": outputs, "placement": {name: probe["placement"] for name, probe in probes.items()}}
    worst = min(outputs, key=lambda o: -1.0 if o["cosine"] is None else o["cosine"])
    simulated = candidate.resolved.target.simulated
    versions = _versions(probes["candidate"]["environment"])
    if worst["cosine"] is None:
        return Seen(None, "the outputs cannot be compared", "distance", data, versions, simulated)
    met = (expect.cosine_at_most is None or worst["cosine"] <= expect.cosine_at_most) and (
        expect.relative_error_at_least is None or worst["relative"] >= expect.relative_error_at_least
    )
    reason = f"cosine {worst['cosine']:.6f}, relative error {worst['relative']:.2g}"
    return Seen(met, reason, "distance", data, versions, simulated)


_RUNS: dict[str, Callable[[Arm, Arm, Expectation, OnEvent], Seen]] = {
    "placement": _placement,
    "failure": _failure,
    "latency": _latency,
    "accuracy": _accuracy,
}


def run(experiment: Experiment, on_event: OnEvent, *, trust: Trust = NOTHING, source: str = "experiment") -> Seen:
    """Make both arms and look; a finding sets options that a document may set, and those that are trusted."""
    with ScratchFolder("winml-replay-") as folder:
        with Worker(preload=("winml.modelkit.knowledge.experiments.make",)) as worker:
            base = _make(experiment.base, experiment.target, folder / "base", worker, trust, source)
            candidate = _make(experiment.candidate, experiment.target, folder / "candidate", worker, trust, source)
        return _RUNS[experiment.measures](base, candidate, experiment.expect, on_event)


def _experiment(finding: Finding, knowledge: Knowledge) -> Experiment:
    if finding.experiment is None:
        able = ", ".join(f"`{e.finding.id}`" for e in knowledge if e.finding.experiment is not None)
        raise RequestError(f"`{finding.id}` has no experiment to replay", hint=f"these have one: {able}")
    return finding.experiment


def _outcome(finding: Finding, experiment: Experiment, seen: Seen) -> Outcome:
    answer = "unclear" if seen.met is None else "holds" if seen.met else "does not hold"
    evidence = Evidence(
        kind=experiment.measures,
        form=seen.form,
        run=f"replay {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        shows=seen.reason,
        speaks="against" if seen.met is False else "for",
        model=f"{experiment.base.builder} against {experiment.candidate.builder}",
        simulated=seen.simulated,
        versions=seen.versions,
        data=seen.data,
    )
    return Outcome(
        OUTCOME_SCHEMA, finding.id, answer, seen.reason, experiment_digest(experiment), __version__, evidence
    )


def _write(outcome: Outcome, folder: Path) -> Path:
    """Write the outcome under the time of its run."""
    stamp = outcome.evidence.run.rpartition(" ")[2].replace(":", "").replace("-", "")
    path = folder / "outcomes" / f"{outcome.finding}-{stamp}.json"
    atomic.write_bytes(path, files.text(outcome.to_json()))
    return path


def replay(
    knowledge: Knowledge, name: str, folder: Path, on_event: OnEvent, *, trust: Trust = NOTHING
) -> dict[str, Any]:
    """Run the experiment of a finding and keep the outcome; one that does not hold is a check answered with no."""
    finding = knowledge.entry(name).finding
    experiment = _experiment(finding, knowledge)
    seen = run(experiment, on_event, trust=trust, source=finding.id)
    outcome = _outcome(finding, experiment, seen)
    path = _write(outcome, folder)
    result = {"file": str(path), "title": finding.title, "outcome": outcome.to_json()}
    if outcome.answer == "does not hold":
        raise CheckFailed(f"`{finding.id}` does not hold here: {outcome.reason}", details=result)
    if outcome.answer == "unclear":
        raise RunFailedError(f"`{finding.id}` could not be decided here: {outcome.reason}", details=result)
    return result
