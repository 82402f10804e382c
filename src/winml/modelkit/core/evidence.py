"""Evidence of a finding: one observation with everything that was seen, by the form of what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.distance import Distance
from winml.modelkit.core.sweep import RecordedPair
from winml.modelkit.core.values import Count, Text, key

EvidenceKind = Literal["latency", "placement", "accuracy", "size", "failure"]
EvidenceForm = Literal["medians", "samples", "nodes", "distance", "error", "words"]
Speaks = Literal["for", "against", "control"]


@dataclass(frozen=True, kw_only=True)
class BaseEvidence:
    """What evidence of every form says."""

    kind: EvidenceKind
    form: EvidenceForm
    run: Text
    """Where it is from: two entries of one run are one observation."""
    shows: Text
    speaks: Speaks = "for"
    model: Text | None = None
    family: Text | None = None
    simulated: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, float] | None = key(omit=True)
    """Numbers of the model's graph, by the names that conditions use; those that are unknown are not there."""

    @property
    def decides(self) -> bool:
        """Whether it can carry a status: seen in full, and for latency measured interleaved on a real device."""
        if self.kind != "latency":
            return self.form != "words"
        return self.form == "samples" and not self.simulated


@dataclass(frozen=True, kw_only=True)
class MediansEvidence(BaseEvidence):
    """Medians of sessions that others recorded, where raw samples are gone."""

    form: Literal["medians"] = "medians"
    data: RecordedPair


@dataclass(frozen=True, kw_only=True)
class RawSamples:
    """A measurement of `winml compare` with what it was judged by, as the version that measured it wrote it."""

    measurement: Mapping[str, Any] | None
    verdict: Mapping[str, Any]
    calibration: str | None
    """The name of the A/A rounds in `calibrations`."""
    calibrations: Mapping[str, Any]
    tests: int
    """How many candidates competed."""


@dataclass(frozen=True, kw_only=True)
class SamplesEvidence(BaseEvidence):
    """Raw samples of an interleaved measurement."""

    form: Literal["samples"] = "samples"
    data: RawSamples


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A model that an EP opens, and where its nodes go."""

    opens: Literal[True] = True
    nodes: Mapping[str, Count]
    """How many, by EP."""
    on_cpu: Mapping[str, Count]
    """Operators that are left to the CPU."""
    partitions: Count


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A model that an EP does not open, and its message."""

    opens: Literal[False] = False
    message: str


@dataclass(frozen=True, kw_only=True)
class Openings:
    """What an EP makes of the two models of an experiment."""

    base: Opened | Refused
    candidate: Opened | Refused


@dataclass(frozen=True, kw_only=True)
class NodesEvidence(BaseEvidence):
    """Where the nodes go."""

    form: Literal["nodes"] = "nodes"
    data: Openings


@dataclass(frozen=True, kw_only=True)
class ErrorEvidence(BaseEvidence):
    """What cannot be opened."""

    form: Literal["error"] = "error"
    data: Openings


@dataclass(frozen=True, kw_only=True)
class OutputDistances:
    """How far the outputs of two models are apart on the same inputs."""

    outputs: tuple[Distance, ...]
    placement: Mapping[str, Any] | None = key(omit=True)
    """Where the nodes of `base` and `candidate` ran, as the version that ran them wrote it."""


@dataclass(frozen=True, kw_only=True)
class DistanceEvidence(BaseEvidence):
    """How far outputs are apart."""

    form: Literal["distance"] = "distance"
    data: OutputDistances


@dataclass(frozen=True, kw_only=True)
class WordsEvidence(BaseEvidence):
    """A report without data."""

    form: Literal["words"] = "words"
    data: None = None


Evidence = MediansEvidence | SamplesEvidence | NodesEvidence | ErrorEvidence | DistanceEvidence | WordsEvidence
