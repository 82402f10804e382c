"""Classes as texts: what a model that knows none of them is asked instead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.images import ImageEncoder, image_encoder
from winml.modelkit.data.samples import Sample, SampleRequest
from winml.modelkit.data.text import FIELDS, TextEncoder, text_encoder
from winml.modelkit.graph.inputs import Arrays

IMAGE_PROMPT, TEXT_PROMPT = "This is a photo of {}.", "This example is {}."
"""As transformers' pipelines have them."""
FEWEST = 2


@dataclass(frozen=True)
class PromptEncoder:
    """An image with the texts of all classes, or a text with the text of each class."""

    classes: tuple[str, ...]
    texts: TextEncoder
    pixels: ImageEncoder | None
    prompts: tuple[Arrays, ...]
    """With images: the texts as inputs, all in one run or one run each, as the model takes them."""
    files: dict[str, str]
    note: str

    @property
    def sees(self) -> bool:
        return self.pixels is not None

    def image(self, content: bytes, where: str) -> Sample:
        assert self.pixels is not None
        seen = self.pixels.image(content, where)
        runs = [{**prompt, **seen.inputs} for prompt in self.prompts]
        return replace(seen, inputs=runs[0], more=tuple(runs[1:]), classes=self.classes)

    def text(self, text: str, where: str) -> Sample:
        runs = [self.texts.encode([text, TEXT_PROMPT.format(name)], where) for name in self.classes]
        return Sample(runs[0], more=tuple(runs[1:]), classes=self.classes)


def _prompts(encoder: TextEncoder, classes: tuple[str, ...]) -> tuple[Arrays, ...]:
    runs = [encoder.encode([IMAGE_PROMPT.format(name)], f"class `{name}`") for name in classes]
    if isinstance(encoder.inputs[0].shape[0], int):
        return tuple(runs)
    return ({name: np.concatenate([run[name] for run in runs]) for name in runs[0]},)


def class_list(labels: Iterable[Any], where: str) -> tuple[str, ...]:
    """The classes that occur in data, in one order; they must be words, which is all that prompts can say."""
    found = set()
    for label in labels:
        if not isinstance(label, str) or not label.strip():
            raise DataError(f"a class of `{where}` must be text, which goes into a prompt, but got {label!r:.80}")
        found.add(label)
    if len(found) < FEWEST:
        raise DataError(f"all samples of `{where}` are of one class; there is nothing to choose from")
    return tuple(sorted(found))


def prompt_encoder(wanted: SampleRequest, classes: tuple[str, ...]) -> PromptEncoder:
    """The encoder for a model, by the tokenizer and the image processor beside it."""
    token_inputs = [i for i in wanted.inputs if i.name in FIELDS]
    image_inputs = [i for i in wanted.inputs if i.name not in FIELDS]
    texts = text_encoder(replace(wanted, inputs=token_inputs))
    pixels = image_encoder(replace(wanted, inputs=image_inputs)) if image_inputs else None
    prompt = TEXT_PROMPT if pixels is None else IMAGE_PROMPT
    return PromptEncoder(
        classes,
        texts,
        pixels,
        _prompts(texts, classes) if pixels else (),
        {**texts.files, **(pixels.files if pixels else {})},
        f"the {len(classes)} classes of the data are prompted as `{prompt.format(classes[0])}`",
    )
