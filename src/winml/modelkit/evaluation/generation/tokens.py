"""Texts as tokens of a model, by the tokenizer.json in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.core.errors import DataError
from winml.modelkit.data.text import find_tokenizer, load_tokenizer
from winml.modelkit.session.generation.generator import Ids


class TextTokens:
    """The tokenizer of a model, which neither cuts nor fills up here."""

    def __init__(self, folder: Path, vocabulary: int | None) -> None:
        self.path = find_tokenizer(folder)
        self._tokenizer = load_tokenizer(self.path)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._vocabulary = vocabulary

    def encode(self, text: str, where: str, *, special: bool = True) -> Any:
        """What the tokenizer makes of a text, with the special tokens that it puts around it unless it has its own."""
        try:
            made = self._tokenizer.encode(text, add_special_tokens=special)
        except Exception as error:  # the tokenizer raises nothing narrower
            raise DataError(f"{where} cannot be tokenized: {error}") from error
        largest = max(made.ids, default=0)
        if self._vocabulary is not None and largest >= self._vocabulary:
            raise DataError(
                f"{where} has token {largest}, but the model has only {self._vocabulary}: `{self.path}` is the "
                "tokenizer of another model",
                hint="name the folder of the right one with `--processor DIR`",
            )
        return made

    def ids(self, text: str, where: str, *, special: bool = True) -> Ids:
        found: Ids = np.asarray(self.encode(text, where, special=special).ids, np.int64)
        if not found.size:
            raise DataError(f"the tokenizer makes no token of {where}")
        return found

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))
