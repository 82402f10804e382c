"""Evidence for the gates: build folders, and files that `eval`, `compare` and `perf` wrote with `-o`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.building.manifest import BuildManifest, load_manifest
from winml.modelkit.building.model_argument import model_argument
from winml.modelkit.building.pipeline.identity import find_changed_file
from winml.modelkit.core import values
from winml.modelkit.core.build_folder import CONFIG, MANIFEST, MODEL, PARTS, source_name
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.generation import GENAI_CONFIG
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.target import Target
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.evaluation.result import EvalResult, sentence
from winml.modelkit.measuring.compare_result import CompareResult
from winml.modelkit.measuring.perf import PerfResult
from winml.modelkit.packaging.gates import ArtifactEvidence, MetricEvidence
from winml.modelkit.packaging.manifest import AccuracyFact, LatencyFact
from winml.modelkit.store import digest

_KINDS: dict[str, type[Any]] = {
    "winml/eval/1": EvalResult,
    "winml/compare/1": CompareResult,
    "winml/perf/1": PerfResult,
}
_HINT = "give files that `eval`, `compare` or `perf` wrote with `-o`"


@dataclass(frozen=True, kw_only=True)
class BuildFolder:
    """A build that is to be packaged."""

    folder: Path
    manifest: BuildManifest
    session: SessionSection
    name: str
    changed_file: str | None
    compile_options: Mapping[str, str]

    @property
    def target(self) -> Target:
        return self.manifest.target

    @property
    def model(self) -> Path:
        return self.folder / MODEL


@dataclass(frozen=True, kw_only=True)
class EvidenceFile:
    """A result, and the target that the user named for it."""

    path: Path
    target: str | None
    digest: str
    value: EvalResult | CompareResult | PerfResult


def read_build(argument: str) -> BuildFolder:
    """The build in a folder; raises for what is none, and for one whose settings a package may not hold."""
    folder = Path(argument)
    if not folder.is_dir():
        raise RequestError(f"build folder not found: `{folder}`", hint=near_path(folder))
    if (folder / PARTS).is_file() or (folder / GENAI_CONFIG).is_file():
        raise RequestError(
            f"`{folder}` holds several models that run together, which cannot be packaged",
            hint="package the build folder of one part; publish the whole with `winml feed push`",
        )
    manifest = load_manifest(folder / MANIFEST)
    if manifest is None:
        raise RequestError(f"`{folder}` is not a build folder", hint="`winml build -m MODEL -o DIR` makes one")
    changed = find_changed_file(folder / MANIFEST)
    # A changed file is an answer of the first gate; reading the folder as a model would refuse it.
    session = model_argument(str(folder)).section if changed is None else SessionSection()
    compiled = read_object(folder / CONFIG).get("compile") if (folder / CONFIG).is_file() else None
    options = compiled.get("provider_options", {}) if isinstance(compiled, dict) else {}
    return BuildFolder(
        folder=folder,
        manifest=manifest,
        session=session,
        name=source_name(folder) or folder.absolute().name,
        changed_file=changed,
        compile_options={str(k): str(v) for k, v in options.items()},
    )


def read_evidence(argument: str) -> EvidenceFile:
    """The result in `FILE` or `TARGET=FILE`; one of a command that failed is evidence as well, if it is whole."""
    target, name = None, argument
    word, _, rest = argument.partition("=")
    if rest and not Path(argument).exists():
        asked = parse_target(word)
        if asked.ep is None:
            raise RequestError(f"`{word}` is not a target", hint="write `--evidence qnn/npu=perf.json`")
        device = asked.device or asked.ep.devices[0]
        target, name = str(Target(asked.ep.name, device)), rest
    path = Path(name)
    if not path.is_file():
        raise RequestError(f"evidence not found: `{path}`", hint=near_path(path))
    content = read_object(path)
    kind = _KINDS.get(str(content.get("schema")))
    if kind is None:
        raise DataError(f"`{path}` is no evidence: its schema is `{content.get('schema')!s:.60}`", hint=_HINT)
    whole = {**{key: value for key, value in content.items() if key != "error"}, "ok": True}
    try:
        value = values.read(kind, whole, strict=False, error=DataError)
    except DataError as error:
        raise DataError(f"`{path}` cannot be read: {error.message}", hint=_HINT) from error
    return EvidenceFile(path=path, target=target, digest=digest.of_file(path), value=value)


def _find_relation(build: BuildFolder, one: EvidenceFile, path: str, target: str, identity: str | None) -> Relation:
    """Whether a model of a result is a build: by the identity that results of builds have, else by the user's word."""
    here = Path(path).resolve() in (build.folder.resolve(), build.model.resolve())
    if target != str(build.target):
        return "other"
    if identity is not None:
        if identity == build.manifest.identity:
            return "same"
        return f"`{one.path.name}` is of another build than the one that is in the folder now" if here else "other"
    if one.target is not None:
        return "same" if one.target == target else "other"
    return f"`{one.path.name}` does not say which build it is of: give the folder with `-m`" if here else "other"


Relation = Literal["same", "other"] | str
"""Or why a result that names the folder of a build is not about the build."""


def _relate(build: BuildFolder, one: EvidenceFile) -> Relation:
    """What a file is to a build; that of a comparison is the best of its candidates."""
    value = one.value
    if isinstance(value, CompareResult):
        arms = [c.arm for c in value.candidates]
        found = [_find_relation(build, one, arm.artifact, str(arm.target), arm.build) for arm in arms]
        return "same" if "same" in found else next((f for f in found if f != "other"), "other")
    identity = value.build if isinstance(value, EvalResult) else value.measurement.arms[0].build
    return _find_relation(build, one, value.model, str(value.target), identity)


def find_about(build: BuildFolder, files: Sequence[EvidenceFile]) -> tuple[EvidenceFile, ...]:
    """The files that are about a build."""
    return tuple(one for one in files if _relate(build, one) == "same")


def names_build(build: BuildFolder, one: EvidenceFile) -> bool:
    """Whether a file is about a build, or would be if it said which one it is of."""
    return _relate(build, one) != "other"


def gather(
    build: BuildFolder, files: Sequence[EvidenceFile], size: int, packaged: Sequence[BuildFolder] = ()
) -> ArtifactEvidence:
    """What the gates judge; `packaged` are all builds of the package, one of them for the CPU."""
    about = find_about(build, files)
    compared = [_compare(build, one, packaged) for one in about if isinstance(one.value, CompareResult)]
    reasons = [found for one in files if (found := _relate(build, one)) not in ("same", "other")]
    return ArtifactEvidence(
        target=str(build.target),
        simulated=build.target.simulated,
        changed_file=build.changed_file,
        proof=build.manifest.proof,
        metrics=tuple(m for one in about if isinstance(one.value, EvalResult) for m in _metrics(build, one)),
        against_cpu=tuple(verdict for verdicts, _ in compared for verdict in verdicts),
        unusable=(*reasons, *(why for _, whys in compared for why in whys)),
        measured_on_device=any(_is_device_latency(one) for one in about),
        bytes=size,
    )


def _compare(
    build: BuildFolder, one: EvidenceFile, packaged: Sequence[BuildFolder]
) -> tuple[list[Verdict], tuple[str, ...]]:
    """The verdicts of a comparison with the CPU, or why it has none that counts."""
    value = one.value
    assert isinstance(value, CompareResult)
    base = value.base.arm
    if str(base.target) != "cpu":
        return [], (f"the base of `{one.path.name}` is on {base.target}, not on the CPU",)
    builds = [other.manifest.identity for other in packaged if str(other.target) == "cpu"]
    if not (base.build in builds if base.build is not None else _is_source(build, base.artifact)):
        why = f"the base of `{one.path.name}` is neither the source nor the artifact for the CPU of this package"
        return [], (why,)
    return [
        (c.confirmation or c).verdict
        for c in value.candidates
        if not c.arm.target.simulated
        and _find_relation(build, one, c.arm.artifact, str(c.arm.target), c.arm.build) == "same"
    ], ()


def _is_source(build: BuildFolder, name: str) -> bool:
    """Whether a model is the one that a build was made from: the same path, or a file of the same content."""
    source, path = build.manifest.source, Path(name)
    if name == source.path or (path.exists() and path.resolve() == Path(source.path).resolve()):
        return True
    return path.is_file() and digest.of_file(path) == source.artifact.digest


def _why_unusable_drop(build: BuildFolder, one: EvidenceFile) -> str | None:
    """Why a drop does not say how much worse than its source on the CPU a build is."""
    assert isinstance(one.value, EvalResult)
    reference = one.value.reference
    if reference is None:
        return None
    if reference.target != "cpu":
        return (
            f"its reference ran on {reference.target} as well, whose own loss is not seen: add `--reference-target cpu`"
        )
    imported = one.target is not None and not Path(reference.model).exists()
    if imported or (reference.build is None and _is_source(build, reference.model)):
        return None
    return f"its reference `{reference.model}` is not the model that it was built from"


def _is_device_latency(one: EvidenceFile) -> bool:
    return isinstance(one.value, PerfResult) and one.target is not None and not one.value.target.simulated


def _metrics(build: BuildFolder, one: EvidenceFile) -> list[MetricEvidence]:
    result = one.value
    assert isinstance(result, EvalResult)
    by_answer: dict[str, list[tuple[str, str]]] = {"exceeded": [], "inconclusive": []}
    for check in result.checks:
        by_answer.setdefault(check.answer, []).append((check.metric, sentence(check, result)))
    found = []
    for name in [result.metric] if result.metric is not None else list(result.metrics):
        estimate, drop = result.metrics.get(name), (result.drop or {}).get(name)
        checks = {answer: tuple(text for _, text in texts) for answer, texts in by_answer.items()}
        interval = None if drop is None or drop.interval is None else (drop.interval.low, drop.interval.high)
        found.append(
            MetricEvidence(
                metric=name,
                value=None if estimate is None else estimate.value,
                interval=None
                if estimate is None or estimate.interval is None
                else (estimate.interval.low, estimate.interval.high),
                drop=None if drop is None else drop.value,
                drop_interval=interval,
                unusable_drop=_why_unusable_drop(build, one),
                has_drop_check=any(check.check in ("max-drop", "min-agreement") for check in result.checks),
                failed_checks=checks["exceeded"],
                unknown_checks=checks["inconclusive"],
                held_checks=tuple(t for answer, texts in checks.items() if answer not in _UNHELD for t in texts),
            )
        )
    return found


_UNHELD = ("exceeded", "inconclusive")


def accuracy_facts(build: BuildFolder, files: Sequence[EvidenceFile]) -> tuple[AccuracyFact, ...]:
    """Every metric of the evaluations of a build."""
    found = []
    for one in find_about(build, files):
        value = one.value
        if isinstance(value, EvalResult):
            for name, estimate in value.metrics.items():
                drop, interval = (value.drop or {}).get(name), estimate.interval
                drop = None if _why_unusable_drop(build, one) is not None else drop
                found.append(
                    AccuracyFact(
                        metric=name,
                        value=estimate.value,
                        interval=None if interval is None else (interval.low, interval.high),
                        drop=None if drop is None else drop.value,
                        samples=value.samples.n,
                        data=Path(value.data.source).name,
                        simulated=value.simulated,
                        evidence=one.digest,
                    )
                )
    return tuple(found)


def latency_fact(build: BuildFolder, files: Sequence[EvidenceFile]) -> LatencyFact | None:
    """What a run took, from the last file that says so; a simulator's times are none."""
    fact = None
    for one in find_about(build, files):
        value = one.value
        if isinstance(value, PerfResult) and not value.target.simulated:
            latency, environment = value.latency_ms, value.environment
            fact = LatencyFact(
                p50_ms=latency.p50,
                interval=latency.interval,
                interval_reason=latency.interval_reason,
                p90_ms=latency.p90,
                sessions=len(value.sessions),
                machine=_machine(environment),
                runtime=f"{environment.runtime.name} {environment.runtime.version}",
                provider=environment.ep.version,
                imported=one.target is not None,
                evidence=one.digest,
            )
    return fact


def _machine(environment: Environment) -> str:
    machine = environment.machine
    return f"{machine.cpu or machine.architecture}, {machine.cores} cores, {machine.system}"


def environment_of(build: BuildFolder, files: Sequence[EvidenceFile]) -> Environment | None:
    """The machine and versions of the last result about a build; a comparison has its candidate's."""
    found = None
    for one in find_about(build, files):
        if isinstance(one.value, EvalResult | PerfResult):
            found = one.value.environment
    return found


def peak_memory(build: BuildFolder, files: Sequence[EvidenceFile]) -> int | None:
    """The most memory that a process with the artifact took, on a device."""
    peaks = [
        one.value.memory.peak
        for one in find_about(build, files)
        if isinstance(one.value, PerfResult) and one.value.memory is not None and not one.value.target.simulated
    ]
    return max((peak for peak in peaks if peak is not None), default=None)
