"""`package.json`: what a package holds, in which order it is tried, under which conditions, and what is known of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from winml.modelkit.core import values
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.latency import Interval
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import Count, Digest, key
from winml.modelkit.packaging.gates import GateAnswer

SCHEMA: Literal["winml/package-manifest/1"] = "winml/package-manifest/1"


@dataclass(frozen=True, kw_only=True)
class PackagedFile:
    """A file of the package."""

    digest: Digest
    bytes: Count


@dataclass(frozen=True, kw_only=True)
class Port:
    """An input or an output of the model."""

    name: str
    type: str
    shape: tuple[int | str, ...]
    """Sizes; a name or a position for one that is open."""
    size: tuple[int, ...] | None = key(omit=True)
    """A shape that the model can be tried with."""
    below: int | None = key(omit=True)
    """Whole numbers of a trial are below this."""


@dataclass(frozen=True, kw_only=True)
class PackagedSession:
    """How a session is opened."""

    threads: int | None
    optimization_level: str
    config_entries: Mapping[str, str]
    ep_options: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What an artifact needs; null where that is not known, which a loader finds out by opening it."""

    provider: str
    """The full name of its execution provider."""
    device: str
    systems: tuple[str, ...] | None
    """Systems it runs on; null for all."""
    onnxruntime_at_least: str
    onnxruntime_tested: str | None
    provider_package: str | None = key(omit=True)
    """The Python package whose version `provider_at_least` is."""
    provider_at_least: str | None = key(omit=True)
    """The version that compiled the artifact: an older one need not read what it wrote."""
    provider_tested: str | None
    driver_tested: str | None
    soc: str | None
    """What a compiled artifact was compiled for."""
    memory_bytes: int | None
    """The most memory that a process with it was seen to take."""


@dataclass(frozen=True, kw_only=True)
class AccuracyFact:
    """A metric of an artifact, and where it was measured."""

    metric: str
    value: float | None
    interval: tuple[float, float] | None
    drop: float | None
    """How much worse it is than the reference."""
    samples: int
    data: str
    simulated: bool
    evidence: Digest


@dataclass(frozen=True, kw_only=True)
class LatencyFact:
    """What a run took, and where that was measured."""

    p50_ms: float
    interval: Interval | None
    interval_reason: str | None
    p90_ms: float
    sessions: int
    machine: str
    runtime: str
    provider: str | None
    imported: bool
    """Named for this target by the user, rather than found by the path of the build."""
    evidence: Digest


@dataclass(frozen=True, kw_only=True)
class PackagedArtifact:
    """A model for one target."""

    target: Target = key(inline=True)
    precision: str
    model: str
    files: tuple[str, ...]
    """The model, and what it names."""
    build: Digest
    """The identity of its build."""
    session: PackagedSession
    conditions: Conditions
    gates: tuple[GateAnswer, ...]
    accuracy: tuple[AccuracyFact, ...]
    latency: LatencyFact | None


@dataclass(frozen=True, kw_only=True)
class PackageSource:
    """The model that all artifacts were built from."""

    name: str
    digest: Digest


@dataclass(frozen=True, kw_only=True)
class PackageManifest:
    """What a package is."""

    schema: Literal["winml/package-manifest/1"] = SCHEMA
    winml: str
    name: str
    source: PackageSource
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    artifacts: tuple[PackagedArtifact, ...]
    """In the order in which a loader tries them."""
    accepted_unknown: tuple[str, ...]
    """Gates whose answer was not known and was accepted by the user."""
    licenses: tuple[str, ...]
    files: Mapping[str, PackagedFile]
    """Every file besides this one and its signature."""


def encode(manifest: PackageManifest) -> bytes:
    """The manifest as it is written."""
    return (json.dumps(values.to_json(manifest), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read_manifest(value: object) -> PackageManifest:
    """The manifest that JSON holds."""
    return values.read(PackageManifest, value, strict=False, error=DataError)
