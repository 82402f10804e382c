"""The catalog: model families, their tasks and proofs; written by `scripts/make_catalog.py`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import Names, Text
from winml.modelkit.knowledge import files

FILE = Path(__file__).with_name("catalog.json")


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


def load(path: Path = FILE) -> Catalog:
    """The catalog in a file."""
    return files.load(path, Catalog)
