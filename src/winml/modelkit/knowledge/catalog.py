"""The catalog: model families, their tasks and proofs; written by `scripts/make_catalog.py`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import Names, Text
from winml.modelkit.knowledge import files

FILE = Path(__file__).with_name("catalog.json")
ARCHITECTURES = Path(__file__).with_name("architectures.json")

ArchitectureOutcome = Literal[
    "right", "wrong", "refused", "not proven", "crashed", "timeout", "skipped", "not run", "not made", "no model"
]
"""What came of a tiny model of an architecture on a target.

`not made`: transformers could not make a tiny model here; `no model`: it has a config class and no model class;
`not run`: it was not tried; `skipped`: it failed on the CPU before."""


@dataclass(frozen=True, kw_only=True)
class FamilyProof:
    """What was tried with a model on a target, and the outcome."""

    family: Text
    model: Text
    weights: Literal["trained", "random"]
    task: Text
    target: Text
    simulated: bool
    precision: Text
    step: Literal["export", "build", "eval"]
    """The step that was tried: an export that agrees with PyTorch, an artifact for the target, a metric."""
    outcome: Literal["proven", "failed"]
    says: Text
    """The numbers of a proof, the reason of a failure."""
    versions: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Models with one `model_type`."""

    name: Text
    modality: Text
    parts: Names
    tasks: Names


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """All families and proofs."""

    schema: Literal["winml/catalog-file/1"] = "winml/catalog-file/1"
    families: tuple[Family, ...]
    proofs: tuple[FamilyProof, ...]


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """What came of a tiny model with random weights of a `model_type` of transformers."""

    name: Text
    model: Text | None
    """Its model class."""
    task: Text | None
    cpu: ArchitectureOutcome
    """`right`: exported, and the artifact computes what PyTorch does."""
    npu: ArchitectureOutcome
    """`right`: built at w8a16 for the NPU, run there, and as close to the export as the precision requires."""
    left: Mapping[str, int]
    """Operators that run on the CPU in the build for the NPU."""
    reason: Text | None
    """Why it is not right."""


@dataclass(frozen=True, kw_only=True)
class Architectures:
    """The walk over all architectures of one version of transformers; written by `scripts/make_catalog.py`."""

    schema: Literal["winml/architectures-file/1"] = "winml/architectures-file/1"
    npu: Text
    """The target behind the column `npu`."""
    simulated: bool
    versions: Mapping[str, str]
    architectures: tuple[Architecture, ...]


def load_architectures(path: Path = ARCHITECTURES) -> Architectures:
    """The outcomes of the walk in a file."""
    return files.load(path, Architectures)


def load(path: Path = FILE) -> Catalog:
    """The catalog in a file."""
    return files.load(path, Catalog)
