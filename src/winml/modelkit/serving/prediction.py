"""What a model answers to one input, in words of its task: values without numpy, because the parent process reads them.

A score that is no number is null: JSON has none for it, and no answer is made of such an output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.events import Event
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.values import Count, key
from winml.modelkit.session.arm import ArmArguments

Scores = Literal["softmax", "sigmoid", "as given"]
"""How a score was made of the number that the model gave: over all classes, for each class alone, or not at all."""
BodyKind = Literal["json", "npz", "image", "audio", "text"]
InputKind = Literal["image", "text", "audio", "arrays", "prompt"]
Finish = Literal["stop", "length"]
"""Why generating ended: by a token or a text that ends it, or by the most tokens that were allowed."""


@dataclass(frozen=True, kw_only=True)
class ScoredLabel:
    label: str
    """The name in the model's config.json, or the number of the class where it has none."""
    number: int
    score: float


@dataclass(frozen=True, kw_only=True)
class Classes:
    """The likeliest classes, the first one first."""

    kind: Literal["classes"] = "classes"
    labels: tuple[ScoredLabel, ...]
    classes: int
    """How many the model knows."""
    scores: Scores


@dataclass(frozen=True, kw_only=True)
class FoundEntity:
    label: str
    text: str
    start: int
    """Where it stands in the text, by characters."""
    end: int
    score: float


@dataclass(frozen=True, kw_only=True)
class Entities:
    """Parts of a text that have a class."""

    kind: Literal["entities"] = "entities"
    entities: tuple[FoundEntity, ...]


@dataclass(frozen=True, kw_only=True)
class Span:
    """The part of a context that answers a question."""

    kind: Literal["span"] = "span"
    text: str
    start: int
    end: int
    score: float
    """The sum of the numbers for its start and its end, as the model gave them."""


@dataclass(frozen=True, kw_only=True)
class GapWords:
    """Words for each gap of a text, the likeliest first."""

    kind: Literal["words"] = "words"
    gaps: tuple[tuple[ScoredLabel, ...], ...]


@dataclass(frozen=True, kw_only=True)
class FoundBox:
    label: str
    number: int
    score: float
    box: tuple[float, float, float, float]
    """Left, top, width and height in pixels of the image."""


@dataclass(frozen=True, kw_only=True)
class Boxes:
    """Objects in an image, the surest first."""

    kind: Literal["boxes"] = "boxes"
    boxes: tuple[FoundBox, ...]
    threshold: float
    """Boxes that are less sure are left out."""


@dataclass(frozen=True, kw_only=True)
class Area:
    label: str
    number: int
    share: float
    """Of all pixels."""


@dataclass(frozen=True, kw_only=True)
class Areas:
    """Classes of pixels, the largest first."""

    kind: Literal["areas"] = "areas"
    areas: tuple[Area, ...]


@dataclass(frozen=True, kw_only=True)
class Similarity:
    """How alike two texts are, by the cosine of their vectors; null for a vector without a direction."""

    kind: Literal["similarity"] = "similarity"
    cosine: float | None


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """The vector of a text or an image."""

    kind: Literal["embedding"] = "embedding"
    size: Count
    norm: float
    first: tuple[float, ...]
    """Its first values."""


@dataclass(frozen=True, kw_only=True)
class GeneratedText:
    """Text that was recognized or generated."""

    kind: Literal["text"] = "text"
    text: str
    prompt_tokens: Count | None = None
    tokens: Count | None = None
    """Tokens that were generated; null of a model that gives the whole text at once."""
    finish: Finish | None = None


@dataclass(frozen=True, kw_only=True)
class OutputsOnly:
    """No answer in words: `reason` says why. The outputs stand beside it."""

    kind: Literal["outputs"] = "outputs"
    reason: str


Answer = (
    Classes
    | Entities
    | Span
    | GapWords
    | Boxes
    | Areas
    | Similarity
    | Embedding
    | GeneratedText
    | OutputsOnly
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OutputFacts:
    """An output of a run, in short."""

    name: str
    type: str
    """Of numpy; `str` for text."""
    shape: tuple[int, ...]
    lowest: float | None
    """Of the numbers that are finite; null where there are none."""
    highest: float | None
    not_finite: Count
    """Values that are NaN or infinite."""
    first: tuple[float | int | bool | str | None, ...]
    """The first values; null for what is not finite."""


@dataclass(frozen=True, kw_only=True)
class TensorFacts:
    """An input or output of a model."""

    name: str
    type: str
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a model is asked: one of its fields, `text_pair` beside `text` only."""

    image: str | None = key(omit=True)
    """A file."""
    audio: str | None = key(omit=True)
    arrays: str | None = key(omit=True)
    """A file of arrays by name."""
    text: str | None = key(omit=True)
    text_pair: str | None = key(omit=True)
    """The context of a question, or the second of two texts."""
    prompt: str | None = key(omit=True)
    labels: tuple[str, ...] = ()
    """Classes to choose from, of a model that has none of its own."""

    @property
    def kind(self) -> InputKind:
        kinds: tuple[InputKind, ...] = ("image", "audio", "arrays", "prompt", "text")
        return next(kind for kind in kinds if getattr(self, kind) is not None)

    @property
    def source(self) -> str:
        """The file or the text itself."""
        return str(getattr(self, self.kind))


@dataclass(frozen=True, kw_only=True)
class Message:
    """A turn of a conversation."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class OpenArguments:
    """What a worker opens to answer with."""

    arm: ArmArguments
    """Its model is a file, or the folder of one that generates text."""
    folder: str
    """Where the model's processor is."""
    task: str | None = None
    task_options: Mapping[str, str] = field(default_factory=dict)
    output: str | None = None
    length: int | None = None
    top: int = 5
    generates: bool = False
    runtime: str | None = None
    new_tokens: int | None = None
    dims: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RuntimeFacts:
    """How a model that generates text is run."""

    name: str
    """The program with its version."""
    reason: str
    """Why that one."""
    context_length: int | None
    """Tokens of a prompt and its answer together; null where the model does not say."""
    new_tokens: int
    """Tokens that are generated at most, unless a request says otherwise."""
    chat: bool
    """Whether the tokenizer has a chat template."""


@dataclass(frozen=True, kw_only=True)
class OpenedModel:
    """A model that is open in a worker."""

    task: str | None
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    placement: Placement | None
    provider_options: Mapping[str, str]
    environment: Environment
    runtime: RuntimeFacts | None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The answer to one input: what `POST /predict` of `winml serve` sends."""

    schema: Literal["winml/prediction/1"] = "winml/prediction/1"
    ok: Literal[True] = True
    answer: Answer
    outputs: tuple[OutputFacts, ...]
    """None of a model that generates text: its logits are not kept."""
    values: Mapping[str, Any] | None = key(omit=True)
    """Whole outputs by name, as nested lists, where they were asked for; null for what is not finite."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """A model and what it is asked."""

    opening: OpenArguments
    given: Given


@dataclass(frozen=True, kw_only=True)
class RunAnswer:
    opened: OpenedModel
    prediction: Prediction


@dataclass(frozen=True, kw_only=True)
class PredictArguments:
    """A request to a model that is open: its body, in the request or in a file."""

    kind: BodyKind
    body: str | None = key(omit=True)
    file: str | None = key(omit=True)
    values: bool | None = None
    """Whether outputs are sent whole; null: where arrays were given."""
    archive: str | None = key(omit=True)
    """A file to write the outputs to, instead of an answer in JSON."""


@dataclass(frozen=True, kw_only=True)
class GenerateArguments:
    """What a model that generates text is asked: a prompt, or the turns of a conversation."""

    prompt: str | None = key(omit=True)
    messages: tuple[Message, ...] = ()
    new_tokens: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TextPiece(Event):
    """Text that was generated since the last piece."""

    event: Literal["piece"] = "piece"
    text: str
    tokens: int
    """Tokens so far."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PredictionResult(CommandResult):
    """The result of `winml run`."""

    schema: Literal["winml/run/1"] = "winml/run/1"
    ok: Literal[True] = True
    model: str
    target: str
    simulated: bool
    built_for: str | None
    """The target of the model's build; null for a model that is no build."""
    task: str | None
    input: InputKind
    source: str
    """The file or the text that was given."""
    answer: Answer
    outputs: tuple[OutputFacts, ...]
    """None of a model that generates text: its logits are not kept."""
    placement: Placement | None
    """Null where the runtime does not say: onnxruntime-genai on the CPU."""
    provider_options: Mapping[str, str]
    environment: Environment
    runtime: RuntimeFacts | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
