"""The values of this package: a sample, a request to a reader, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.config import DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.graph.inputs import Arrays, Input

Form = Literal[
    "joined", "apart", "question", "words", "speech", "mask", "prompts", "gaps", "choices", "passages", "retrieval",
    "depth", "target", "points", "segments", "keypoints", "series", "spoken", "document", "asked", "passage",
    "prompt", "options",
]  # fmt: skip
"""What a sample is made of.

`joined`: an image, a text, or two texts that are one input; `apart`: two texts, a run of the model each; `question`: a
question with its context; `words`: a text that the data has split into words; `speech`: a recording; `mask`: an image,
with a second one for its label; `prompts`: an image or a text, with a text for each class of the data; `gaps`: a text
with words left out; `choices`: a text with its possible continuations; `passages`: a question with texts to rank;
`retrieval`: questions, and the texts that they are looked for in; `depth`: an image with its depth map; `target`: an
image with the one that it should become; `points`: an image with points on an object and its mask; `segments`: an image
with a mask of every object; `keypoints`: a person in an image; `series`: values over time; `spoken`: a text with a
recording; `document`: a question with the words of a page; `asked`: an image with a question. For models that generate,
texts as they are, in `about`: `passage`: a text; `prompt`: a text to continue or to answer; `options`: a text with its
possible continuations.
"""

Spans = tuple[tuple[int, int] | None, ...]
"""Where each token lies in the context, by characters; None for tokens that are not of the context."""


DATA = "*"
"""The data file among what samples are made of: what it is called makes no difference."""


class NamedClass(int):
    """The number of a class in data that also names it."""

    name: str

    def __new__(cls, number: int, name: str) -> NamedClass:
        made = super().__new__(cls, number)
        made.name = name
        return made


@dataclass(frozen=True)
class Sample:
    """Inputs of one run with batch dimension 1, and what the answer should be."""

    inputs: Arrays
    label: Any = None
    more: tuple[Arrays, ...] = ()
    """Inputs of further runs that belong to it: the second text of a pair, later windows of a long context, later steps
    of a sequence."""
    context: str | None = None
    spans: tuple[Spans, ...] = ()
    """With a context: one entry per run."""
    where: str = "a sample"
    """How to name it in errors."""
    words: tuple[int | None, ...] = ()
    """The word that each token is of; None for tokens that are of none."""
    size: tuple[int, int] | None = None
    """Height and width of the image before any step."""
    classes: tuple[str, ...] = ()
    """The classes of the prompts, in their order."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What a scorer must know of how the inputs were made, by the form: places of gaps, the box that was cut out."""

    def with_label(self, label: Any, where: str) -> Sample:
        return replace(self, label=label, where=where)


@dataclass(frozen=True)
class SampleRequest:
    """A request to a reader."""

    section: DataSection
    path: Path
    inputs: Sequence[Input]
    folder: Path | None
    """Where the tokenizer or the image processor is looked for."""
    labels: bool | None
    """Whether samples need a label; None takes one where the data has it."""
    form: Form = "joined"
    steps: bool = False
    """Whether a sample is a sequence: an array has one more dimension than its input, the first."""


@dataclass(frozen=True)
class SampleSource:
    """What a reader found: the chosen samples, and what they are made of."""

    count: int
    samples: Callable[[], Iterator[Sample]]
    content: dict[str, str]
    """Digests of everything that samples are made of, by name."""
    columns: dict[str, str] = field(default_factory=dict)
    """The columns that are read, by role."""
    notes: tuple[str, ...] = ()
    """Decisions that the request left open."""
    unjudged: int = 0
    """Further samples that come after these and have no score of their own: texts that are searched."""
