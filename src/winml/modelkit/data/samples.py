"""The words of this package: a sample, what a reader is asked for, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.config import DataSection
from winml.modelkit.graph.inputs import Arrays, Input

Pairs = Literal["joined", "apart", "question"]
"""What two texts of one sample are: one input together, two runs of the model, or a question with its context."""

Spans = tuple[tuple[int, int] | None, ...]
"""Where each token lies in the context, by characters; None for tokens that are not of the context."""


@dataclass(frozen=True)
class Sample:
    """Inputs of one run with batch dimension 1, and what the answer should be."""

    inputs: Arrays
    label: Any = None
    more: tuple[Arrays, ...] = ()
    """Inputs of further runs that belong to it: the second text of a pair, later windows of a long context."""
    context: str | None = None
    spans: tuple[Spans, ...] = ()
    """With a context: one entry per run."""
    where: str = "a sample"
    """How to name it in errors."""

    def labelled(self, label: Any, where: str) -> Sample:
        return replace(self, label=label, where=where)


@dataclass(frozen=True)
class Wanted:
    """What a reader is asked for."""

    section: DataSection
    path: Path
    inputs: Sequence[Input]
    folder: Path | None
    """Where the tokenizer or the image processor is looked for."""
    labels: bool
    pairs: Pairs


@dataclass(frozen=True)
class Found:
    """What a reader found: the chosen samples, and what they are made of."""

    count: int
    samples: Callable[[], Iterator[Sample]]
    content: dict[str, str]
    """Digests of everything that samples are made of, by name."""
    columns: dict[str, str] = field(default_factory=dict)
    """The columns that are read, by role."""
    notes: tuple[str, ...] = ()
    """What was decided here because nobody else did."""
