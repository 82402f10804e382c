"""The catalog: families of models, their tasks and what was proven of them; written by `scripts/make_catalog.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.sections import choice, each, flag, key, names, section, text, words
from winml.modelkit.knowledge import files

SCHEMA = "winml/catalog-file/1"
FILE = Path(__file__).with_name("catalog.json")


def _schema(value: Any, where: str) -> str:
    if value != SCHEMA:
        raise RequestError(f"`{where}` must be `{SCHEMA}` but got {value!r}")
    return SCHEMA


@dataclass(frozen=True)
class Proof:
    """What was tried with a model on a target, and what came of it."""

    family: str = key(text)
    model: str = key(text)
    weights: str = key(choice("trained", "random"))
    task: str = key(text)
    target: str = key(text)
    simulated: bool = key(flag)
    precision: str = key(text)
    step: str = key(choice("export", "build", "eval"))
    """How far it had to come: a file that computes what PyTorch does, an artifact for the target, a metric."""
    outcome: str = key(choice("proven", "failed"))
    says: str = key(text)
    """The numbers of a proof, the reason of a failure."""
    versions: dict[str, str] = key(words, factory=dict)


@dataclass(frozen=True)
class Family:
    """Models with one `model_type`."""

    name: str = key(text)
    modality: str = key(text)
    parts: tuple[str, ...] = key(names)
    tasks: tuple[str, ...] = key(names)


@dataclass(frozen=True)
class Catalog:
    """All families and proofs."""

    schema: str = key(_schema)
    families: tuple[Family, ...] = key(each(section(Family)), ())
    proofs: tuple[Proof, ...] = key(each(section(Proof)), ())


def load(path: Path = FILE) -> Catalog:
    """The catalog in a file."""
    return files.read(path, lambda value: sections.read(Catalog, value, ""))
