"""Texts as a model takes them, by the tokenizer.json beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import check_sample
from winml.modelkit.data import processor
from winml.modelkit.data.arrays import as_input
from winml.modelkit.data.extras import extra
from winml.modelkit.data.samples import Form, SampleRequest, Spans
from winml.modelkit.graph import sizes
from winml.modelkit.graph.inputs import Arrays, Input
from winml.modelkit.store import digest

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
_CONFIG = "config.json"
USUAL_LENGTH = 128
DEFAULT_LENGTH: dict[Form, int] = {"question": 384, "words": 256, "document": 512, "passages": 256}
"""Tokens per run where neither the model nor the user says how many and the usual ones would cut much."""
_TOKEN_BYTES = 64
"""What a token takes in the tokenizer, with its text and its place."""
STRIDE = 128
"""Tokens that two windows of a long context share."""

FIELDS: dict[str, str] = {
    "input_ids": "ids",
    "attention_mask": "attention_mask",
    "input_mask": "attention_mask",
    "token_type_ids": "type_ids",
    "segment_ids": "type_ids",
}
"""Input of a model -> what the tokenizer calls it."""


@dataclass(frozen=True)
class TextEncoder:
    """Texts to token inputs of one length."""

    tokenizer: Any
    inputs: tuple[Input, ...]
    most: int
    """Tokens that a text may have; shorter ones are filled up."""
    files: dict[str, str]
    note: str | None

    def arrays(self, encoding: Any, where: str) -> Arrays:
        """The inputs of the model that what the tokenizer made gives."""
        return {i.name: as_input(np.asarray(getattr(encoding, FIELDS[i.name])), i, where) for i in self.inputs}

    def _tokenize(self, texts: Sequence[Any], where: str, **how: Any) -> Any:
        try:
            return self.tokenizer.encode(*texts, **how)
        except Exception as error:  # the tokenizer raises nothing narrower
            raise DataError(f"{where} cannot be tokenized: {error}") from error

    def tokens(self, texts: Sequence[str], where: str) -> Any:
        """What the tokenizer makes of one text, or of two that belong together."""
        return self._tokenize(texts, where)

    def encode(self, texts: Sequence[str], where: str) -> Arrays:
        """One run for one text, or for two that belong together."""
        return self.arrays(self._tokenize(texts, where), where)

    def words(self, words: Sequence[str], where: str) -> tuple[Arrays, tuple[int | None, ...]]:
        """One run for a text that is split already, and the word each token is of; words that are cut have none."""
        encoding = self._tokenize((words,), where, is_pretokenized=True)
        return self.arrays(encoding, where), tuple(encoding.word_ids)

    def page(self, question: Sequence[str], words: Sequence[str], where: str) -> list[Any]:
        """What the tokenizer makes of a question with the words of a page: as many windows as the page is long."""
        self.tokenizer.no_truncation()
        asked = sum(self._tokenize((question,), where, is_pretokenized=True).attention_mask) - self._around(pair=False)
        self._cut_second(asked, where)
        first = self._tokenize((question, words), where, is_pretokenized=True)
        return [first, *first.overflowing]

    def separators(self, encoding: Any) -> list[bool]:
        """Which tokens end a part of the text: special ones that are followed by another part, or by filling only."""
        special, used = encoding.special_tokens_mask, encoding.attention_mask
        sides = encoding.sequence_ids
        return [
            bool(special[i] and used[i] and any(side is not None for side in sides[:i])) for i in range(len(special))
        ]

    def windows(self, question: str, context: str, where: str) -> tuple[tuple[Arrays, ...], tuple[Spans, ...]]:
        """As many runs as the context is long, and where their tokens lie in it."""
        self.tokenizer.no_truncation()
        asked = sum(self._tokenize((question,), where).attention_mask) - self._around(pair=False)
        self._cut_second(asked, where)
        first = self._tokenize((question, context), where)
        encodings = [first, *first.overflowing]
        return tuple(self.arrays(e, where) for e in encodings), tuple(map(_spans, encodings))

    def _cut_second(self, asked: int, where: str) -> None:
        """Have the second text cut into windows that overlap, beside a first of so many tokens."""
        room = self.most - asked - self._around(pair=True)
        if room < 1:
            raise DataError(f"the question of {where} has {asked} tokens, which leaves no room for its context")
        self.tokenizer.enable_truncation(self.most, stride=min(STRIDE, room // 2), strategy="only_second")

    def _around(self, *, pair: bool) -> int:
        """Tokens that are put around one text or two."""
        return int(self.tokenizer.num_special_tokens_to_add(pair))


def _spans(encoding: Any) -> Spans:
    return tuple(
        span if part == 1 else None for span, part in zip(encoding.offsets, encoding.sequence_ids, strict=True)
    )


def _pad_token(tokenizer: Any, settings: dict[str, Any], path: Path) -> str:
    """The token that fills up short texts."""
    if tokenizer.padding:
        return str(tokenizer.padding["pad_token"])
    token = settings.get("pad_token")
    token = token.get("content") if isinstance(token, dict) else token
    if not isinstance(token, str) or tokenizer.token_to_id(token) is None:
        raise DataError(f"the tokenizer in `{path.parent}` has no padding token", hint=f"add `pad_token` to {SETTINGS}")
    return token


def _ids(inputs: tuple[Input, ...]) -> Input:
    """The input that takes token ids; an error when the model wants anything that texts do not give."""
    for spec in inputs:
        if spec.name not in FIELDS or len(spec.shape) != 2:
            raise DataError(
                f"texts cannot fill input `{spec.name}` {list(spec.shape)}",
                hint=f"texts fill, as [batch, sequence]: {', '.join(FIELDS)}",
            )
    return inputs[0]


def _length(wanted: SampleRequest, spec: Input, longest: int | None) -> tuple[int, str | None]:
    """Tokens per run, and what to say when that was decided here."""
    fixed, asked = spec.shape[1], wanted.section.length
    if isinstance(fixed, int):
        if asked not in (None, fixed):
            raise DataError(f"the model takes {fixed} tokens, so a text cannot have {asked}")
        return fixed, None
    if asked is not None:
        return asked, None
    usual = DEFAULT_LENGTH.get(wanted.form, USUAL_LENGTH)
    config = processor.find(wanted.folder, _CONFIG)
    positions = None if config is None else sizes.positions(processor.read_object(config))
    length = min(usual, longest or usual, positions or usual)
    return (
        length,
        f"texts are cut or padded to {length} tokens: the model leaves their length open",
    )


def _longest(settings: dict[str, Any]) -> int | None:
    """The most tokens the model was made for; transformers writes a huge number for unknown."""
    value = settings.get("model_max_length")
    return int(value) if isinstance(value, int | float) and 0 < value < 1 << 20 else None


def find_tokenizer(folder: Path | None) -> Path:
    """The tokenizer.json of a model; an error says where it is looked for."""
    path = processor.find(folder, TOKENIZER)
    if path is None:
        where = f" in `{folder}`" if folder else ""
        raise DataError(
            f"texts need the model's tokenizer, but there is no {TOKENIZER}{where}",
            hint=f"put {TOKENIZER} beside the model or name its folder with `--processor DIR`",
        )
    return path


def load_tokenizer(path: Path) -> Any:
    tokenizers = extra("tokenizers", name="text", what="reading texts")
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the tokenizer raises nothing narrower
        raise DataError(f"`{path}` is not a tokenizer: {error}") from error


def text_encoder(wanted: SampleRequest, *, split: bool = False) -> TextEncoder:
    """The encoder for a model, by the tokenizer beside it; `split` for texts that come as words."""
    inputs = tuple(wanted.inputs)
    path = find_tokenizer(wanted.folder)
    beside = processor.find(wanted.folder, SETTINGS)
    settings = processor.read_object(beside) if beside else {}
    tokenizer = load_tokenizer(path)
    if split and hasattr(tokenizer.pre_tokenizer, "add_prefix_space"):
        # A space is part of a word to byte-level tokenizers; words of a list come without.
        tokenizer.pre_tokenizer.add_prefix_space = True
    length, note = _length(wanted, _ids(inputs), _longest(settings))
    check_sample(length * len(inputs) * _TOKEN_BYTES, f"a text of {length} tokens")
    most = min(length, _longest(settings) or length)
    _prepare(tokenizer, length, most, _pad_token(tokenizer, settings, path), settings)
    files = {p.name: digest.of_file(p) for p in (path, beside) if p is not None}
    return TextEncoder(tokenizer, inputs, most, files, note)


def _prepare(tokenizer: Any, length: int, most: int, pad: str, settings: dict[str, Any]) -> None:
    # Below that the tokenizer does not cut at all.
    least = int(tokenizer.num_special_tokens_to_add(True)) + 1
    if most < least:
        raise DataError(f"texts of {most} tokens are too short; with special tokens they need {least}")
    tokenizer.enable_truncation(most)
    side = settings.get("padding_side", "right")
    if side not in ("left", "right"):
        raise DataError(f"`padding_side` of {SETTINGS} must be `left` or `right` but got {side!r}")
    tokenizer.enable_padding(
        direction=side,
        pad_id=tokenizer.token_to_id(pad),
        pad_token=pad,
        length=length,
    )
