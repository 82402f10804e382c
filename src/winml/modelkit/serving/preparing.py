"""From an image, a text, a recording or arrays to the inputs of a model, by the model's own processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from winml.modelkit.core.config import DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.limits import check_sample, read_sample
from winml.modelkit.core.suggest import near_path
from winml.modelkit.data.audio import speech_encoder
from winml.modelkit.data.images import image_encoder
from winml.modelkit.data.prompts import FEWEST, prompt_encoder
from winml.modelkit.data.samples import Form, Sample, SampleRequest
from winml.modelkit.data.text import TextEncoder, text_encoder
from winml.modelkit.data.text_rows import find_gap_mark
from winml.modelkit.graph.inputs import InputSpec, from_npz
from winml.modelkit.serving.prediction import Given

T = TypeVar("T")
_TEXT_BYTES = 16
"""What a character of a text takes in a tokenizer, at the least."""
_FORMS: dict[str, Form] = {"question-answering": "question", "token-classification": "words"}
"""Tasks whose texts are longer than usual where the model leaves their length open."""
PAIR_NEEDED = {
    "question-answering": "the context that holds the answer",
    "sentence-similarity": "the text to compare with",
}
ZERO_SHOT = ("zero-shot-image-classification", "zero-shot-classification", "zero-shot-object-detection")


@dataclass(frozen=True)
class Prepared:
    """The runs of a model that answer one input, and what must be known of how they were made."""

    sample: Sample
    notes: tuple[str, ...] = ()
    text: str | None = None
    encoding: Any = None
    """What the tokenizer made of the text, where places in it are needed."""
    gaps: tuple[int, ...] = ()
    """Places of tokens that are to be filled."""
    tokenizer: Any = None
    ready: bool = False
    """Whether the inputs came as arrays, which may hold a batch."""

    @property
    def is_single(self) -> bool:
        """Whether there is one answer."""
        arrays = [array for array in self.sample.inputs.values() if hasattr(array, "shape")]
        return not self.ready or all(array.shape[:1] in ((), (1,)) for array in arrays)


class Preparer:
    """Makes inputs for one model; what it reads from the model's folder is read once."""

    def __init__(self, folder: Path, task: str | None, *, length: int | None = None) -> None:
        self._folder, self._task, self._length = folder, task, length
        self._made: dict[object, Any] = {}

    def prepare(self, given: Given, specs: Sequence[InputSpec]) -> Prepared:
        """The runs for one input of a model with these inputs."""
        inputs = tuple(specs)
        if given.arrays is not None:
            path = Path(given.arrays)
            return Prepared(Sample(from_npz(path, inputs), where=f"`{path}`"), ready=True)
        if given.image is not None:
            return self._image(given, inputs)
        if given.audio is not None:
            content, where = _read(given.audio)
            encoder = self._keep("audio", lambda: speech_encoder(self._request(inputs)))
            return Prepared(Sample(encoder.encode(content, where), where=where))
        if given.text is None:
            raise RequestError(
                "a prompt is for models that generate text", hint="`--text` gives a text to any other model"
            )
        return self._text(given, inputs)

    def _request(self, inputs: Sequence[InputSpec]) -> SampleRequest:
        section = DataSection("input", length=self._length)
        form = _FORMS.get(self._task or "", "joined")
        return SampleRequest(section, Path("input"), inputs, self._folder, labels=False, form=form)

    def _keep(self, name: object, make: Callable[[], T]) -> T:
        if name not in self._made:
            if len(self._made) > _MOST_KEPT:
                self._made.clear()
            self._made[name] = make()
        return cast("T", self._made[name])

    def _image(self, given: Given, inputs: Sequence[InputSpec]) -> Prepared:
        content, where = _read(cast("str", given.image))
        if given.labels or self._task in ZERO_SHOT:
            prompts = self._prompts(given.labels, inputs)
            if not prompts.sees:
                raise DataError("the model takes no image", hint="give it a text with `--text`")
            return Prepared(prompts.image(content, where), (prompts.note,))
        encoder = self._keep("image", lambda: image_encoder(self._request(inputs)))
        return Prepared(encoder.image(content, where), (encoder.note,) if encoder.note else ())

    def _prompts(self, labels: tuple[str, ...], inputs: Sequence[InputSpec]) -> Any:
        if len(labels) < FEWEST:
            raise RequestError(
                f"task `{self._task}` needs the classes to choose from", hint="name two or more: `--labels cat,dog`"
            )
        if len(set(labels)) != len(labels) or not all(label.strip() for label in labels):
            raise RequestError("labels must be different, and none of them empty")
        return self._keep(("prompts", labels), lambda: prompt_encoder(self._request(inputs), labels))

    def _text(self, given: Given, inputs: Sequence[InputSpec]) -> Prepared:
        text, pair = cast("str", given.text), given.text_pair
        if not text.strip():
            raise RequestError("the text is empty")
        check_sample(_TEXT_BYTES * (len(text) + len(pair or "")), "the text")
        if self._task in PAIR_NEEDED and pair is None:
            raise RequestError(
                f"task `{self._task}` needs two texts",
                hint=f"give {PAIR_NEEDED[self._task or '']} with `--text-pair`",
            )
        if len(inputs) == 1 and inputs[0].dtype == "str":
            return self._plain_text(text, pair, inputs[0])
        if given.labels or self._task in ZERO_SHOT:
            prompts = self._prompts(given.labels, inputs)
            if prompts.sees:
                raise DataError("the model takes an image, too", hint="give it with `--image`")
            return Prepared(prompts.text(text, _WHERE), (prompts.note,))
        encoder = self._keep("text", lambda: text_encoder(self._request(inputs)))
        notes = (encoder.note,) if encoder.note else ()
        if self._task == "question-answering" and pair is not None:
            runs, spans = encoder.windows(text, pair, _WHERE)
            return Prepared(Sample(runs[0], None, runs[1:], pair, spans, _WHERE), notes, pair)
        if self._task == "sentence-similarity" and pair is not None:
            first, second = (encoder.encode([one], _WHERE) for one in (text, pair))
            return Prepared(Sample(first, more=(second,), where=_WHERE), notes)
        texts = [text] if pair is None else [text, pair]
        if self._task == "fill-mask":
            return self._with_gaps(encoder, text, inputs, notes)
        encoding = encoder.tokens(texts, _WHERE)
        return Prepared(
            Sample(encoder.arrays(encoding, _WHERE), where=_WHERE), (*notes, *_cut_notes(encoding)), text, encoding
        )

    def _with_gaps(
        self, encoder: TextEncoder, text: str, inputs: Sequence[InputSpec], notes: tuple[str, ...]
    ) -> Prepared:
        mark, number = find_gap_mark(encoder, self._request(inputs))
        encoder.tokenizer.add_special_tokens([mark])  # not every tokenizer.json says that it is one word
        for usual in _GAPS:
            text = text.replace(usual, mark)
        encoding = encoder.tokens([text], _WHERE)
        gaps = tuple(place for place, token in enumerate(encoding.ids) if token == number)
        if not gaps:
            raise RequestError("the text has no gap to fill", hint=f"write it as {mark}, for example `a {mark} day`")
        sample = Sample(encoder.arrays(encoding, _WHERE), where=_WHERE)
        return Prepared(sample, (*notes, *_cut_notes(encoding)), text, encoding, gaps, encoder.tokenizer)

    def _plain_text(self, text: str, pair: str | None, spec: InputSpec) -> Prepared:
        """A model with its tokenizer inside takes the text itself."""
        if pair is not None:
            raise RequestError(f"input `{spec.name}` takes one text", hint="drop `--text-pair`")
        shape = tuple(dim if isinstance(dim, int) else 1 for dim in spec.shape)
        if int(np.prod(shape)) != 1:
            raise DataError(f"input `{spec.name}` takes {list(spec.shape)} texts, and one is given")
        return Prepared(Sample({spec.name: np.full(shape, text, dtype=object)}, where=_WHERE), text=text)


_WHERE = "the text"
_GAPS = ("[MASK]", "<mask>")
_MOST_KEPT = 64


def _cut_notes(encoding: Any) -> tuple[str, ...]:
    """What was cut away, which the answer does not know."""
    if not encoding.overflowing:
        return ()
    return (f"the text was cut to its first {len(encoding.ids)} tokens; `--length N` takes more of it",)


def _read(name: str) -> tuple[bytes, str]:
    path, where = Path(name), f"`{name}`"
    try:
        return read_sample(path, where), where
    except FileNotFoundError as error:
        raise DataError(f"file not found: {where}", hint=near_path(path)) from error
    except IsADirectoryError as error:
        raise DataError(f"{where} is a folder, and one file is taken") from error
