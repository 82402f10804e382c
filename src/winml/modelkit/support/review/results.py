"""Results of commands as stored in evidence: the fields that a producer and a reviewer need must exist and be valid.

Results of other versions may hold more. What numbers are made of is read by classes of its own, with limits that keep
arithmetic on what others wrote from failing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from winml.modelkit.building.export.result import ExportResult
from winml.modelkit.building.inspect import Inspection
from winml.modelkit.building.result import BuildPartsResult, BuildResult
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.latency import CPUTime, Latency
from winml.modelkit.core.measurement import PairProtocol, Round, SessionsProtocol
from winml.modelkit.core.values import AtLeast, AtMost, NotEmpty, read
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.support.inputs import InputsResult
from winml.modelkit.support.probe_result import ProbeResult

Purpose = Literal["probe", "config", "build", "inspect", "inputs", "perf", "compare", "export", "parity", "metric"]
"""The purpose of a command of a contribution."""
Count = Annotated[int, AtLeast(0), AtMost(2**53)]
"""Limited to integers that a float represents exactly."""
Nanoseconds = Annotated[int, AtLeast(0), AtMost(2**53)]
Number = Annotated[float, AtLeast(-1e300), AtMost(1e300)]


@dataclass(frozen=True, kw_only=True)
class CommandError:
    """Why a command failed, as far as it reported it."""

    code: str | None = None
    message: str | None = None
    hint: str | None = None
    exit: int | None = None


@dataclass(frozen=True, kw_only=True)
class Success:
    """Whether a command succeeded."""

    ok: Any = None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The result of a command that failed."""

    error: CommandError | None = None


NO_ERROR = CommandError()


@dataclass(frozen=True, kw_only=True)
class ConfigEvidence:
    schema: Literal["winml/config/1"]
    config: Mapping[str, Any]
    """Compared as it is."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything except the path of the model."""
        return {name: value for name, value in self.config.items() if name != "model"}


@dataclass(frozen=True, kw_only=True)
class Content:
    digest: str


@dataclass(frozen=True, kw_only=True)
class MeasuringEnvironment:
    """Where something was measured."""

    machine: Mapping[str, Any]
    """Compared as it is."""
    winml: str | None = None
    python: str | None = None
    numpy: str | None = None


@dataclass(frozen=True, kw_only=True)
class Samples(Round):
    """A round with samples to compute from."""

    wall_ns: Annotated[tuple[Nanoseconds, ...], NotEmpty()]
    cpu_ns: Annotated[tuple[Nanoseconds, ...], NotEmpty()]


@dataclass(frozen=True, kw_only=True)
class PerfMeasurement:
    rounds: Annotated[tuple[Samples, ...], NotEmpty()]
    protocol: SessionsProtocol


@dataclass(frozen=True, kw_only=True)
class Placement:
    nodes: Mapping[str, Count]


@dataclass(frozen=True, kw_only=True)
class PerfEvidence:
    schema: Literal["winml/perf/1"]
    target: str
    simulated: bool
    inputs: Any
    """Compared as they are."""
    latency_ms: Latency
    """Compared with the samples."""
    cpu_ms: CPUTime
    placement: Placement
    measurement: PerfMeasurement
    environment: MeasuringEnvironment


@dataclass(frozen=True, kw_only=True)
class ComparedArm:
    target: str
    simulated: bool


@dataclass(frozen=True, kw_only=True)
class ComparedMeasurement:
    arms: tuple[ComparedArm, ...]
    rounds: tuple[Samples, ...]
    protocol: PairProtocol


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """A second measurement on fresh rounds."""

    first: Verdict
    verdict: Verdict
    measurement: ComparedMeasurement | None
    calibration: str | None


@dataclass(frozen=True, kw_only=True)
class Conditions:
    disturbed: bool


@dataclass(frozen=True, kw_only=True)
class ComparedBase:
    target: str
    simulated: bool
    fingerprint: str | None


@dataclass(frozen=True, kw_only=True)
class ComparedCandidate(ComparedBase):
    verdict: Verdict
    measurement: ComparedMeasurement | None
    confirmation: Confirmation | None
    conditions: Conditions | None
    calibration: str | None
    tests: int


@dataclass(frozen=True, kw_only=True)
class CompareEvidence:
    schema: Literal["winml/compare/1"]
    base: ComparedBase
    candidates: tuple[ComparedCandidate]
    calibrations: Mapping[str, Any]
    environment: MeasuringEnvironment

    @property
    def candidate(self) -> ComparedCandidate:
        return self.candidates[0]


@dataclass(frozen=True, kw_only=True)
class LeastSpread:
    min: Number
    median: Number


@dataclass(frozen=True, kw_only=True)
class MostSpread:
    max: Number
    median: Number


@dataclass(frozen=True, kw_only=True)
class OutputDistance:
    """How far an output is from the reference's."""

    output: str
    runs: Annotated[int, AtLeast(1), AtMost(10_000)]
    equal: int
    incomparable: int
    cosine: LeastSpread | None
    max_abs: MostSpread | None
    sqnr_db: LeastSpread | None


@dataclass(frozen=True, kw_only=True)
class KeptArray:
    """The description of a saved output of one run."""

    dtype: str
    shape: tuple[Annotated[int, AtLeast(0), AtMost(2**31)], ...]
    whole: bool
    digest: str


@dataclass(frozen=True, kw_only=True)
class KeptOutputs:
    file: str
    digest: str
    arrays: Mapping[str, KeptArray]


@dataclass(frozen=True, kw_only=True)
class ParityEvidence:
    schema: Literal["winml/eval/1"]
    distance: Annotated[tuple[OutputDistance, ...], NotEmpty()]
    outputs: KeptOutputs
    data: Content
    environment: MeasuringEnvironment


@dataclass(frozen=True, kw_only=True)
class MetricInterval:
    low: Number
    high: Number


@dataclass(frozen=True, kw_only=True)
class MetricValue:
    kind: str
    value: Number | None
    interval: MetricInterval | None
    n: Count


@dataclass(frozen=True, kw_only=True)
class Scores:
    series: Mapping[str, str | tuple[Any, ...]]
    """Ones and zeros as text, numbers, or records of what was found."""


@dataclass(frozen=True, kw_only=True)
class SampleScores:
    candidate: Scores


@dataclass(frozen=True, kw_only=True)
class MetricEvidence:
    schema: Literal["winml/eval/1"]
    metric: str | None
    metrics: Mapping[str, MetricValue]
    samples: SampleScores
    data: Content
    environment: MeasuringEnvironment

    def __post_init__(self) -> None:
        if self.metric is not None and self.metric not in self.metrics:
            raise DataError(f"`metrics.{self.metric}` is missing")

    @property
    def deciding(self) -> MetricValue | None:
        """The metric of the task; None where it has none."""
        return None if self.metric is None else self.metrics[self.metric]


Evidence = (
    ProbeResult
    | ConfigEvidence
    | BuildResult
    | BuildPartsResult
    | Inspection
    | InputsResult
    | PerfEvidence
    | CompareEvidence
    | ExportResult
    | ParityEvidence
    | MetricEvidence
)
Result = Evidence | Failure
Results = Mapping[str, Result | None]
"""By command; None for one that gave no JSON object."""
E = TypeVar("E", bound=Evidence)

_FORMS: dict[Purpose, Any] = {
    "probe": ProbeResult,
    "config": ConfigEvidence,
    "build": BuildResult | BuildPartsResult,
    "inspect": Inspection,
    "inputs": InputsResult,
    "perf": PerfEvidence,
    "compare": CompareEvidence,
    "export": ExportResult,
    "parity": ParityEvidence,
    "metric": MetricEvidence,
}


def read_result(purpose: Purpose, value: Any) -> Result:
    """The result of a command from its JSON; an error names the first invalid field."""
    found: Result = read(
        _FORMS[purpose] if read(Success, value, strict=False).ok is True else Failure, value, strict=False
    )
    return found


def error_of(result: Result | None) -> CommandError:
    """The error of a result; an empty one where it has none."""
    return result.error or NO_ERROR if isinstance(result, Failure) else NO_ERROR


def find(results: Results, step: str, form: type[E]) -> E | None:
    """The result of a command that succeeded; None when it failed, or was not run."""
    found = results.get(step)
    return found if isinstance(found, form) else None


def rounds_of(result: Result | None) -> Iterator[Samples]:
    """Every round of a measurement or of a comparison."""
    if isinstance(result, PerfEvidence):
        yield from result.measurement.rounds
    if isinstance(result, CompareEvidence):
        for taken in (result.candidate, result.candidate.confirmation):
            if taken is not None and taken.measurement is not None:
                yield from taken.measurement.rounds
