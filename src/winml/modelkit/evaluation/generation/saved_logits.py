"""Logits of a model at chosen places of texts, in files: two models need not be open at once to be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np

from winml.modelkit.evaluation import saved_outputs
from winml.modelkit.session.generation.generator import Ids, Logits

OUTPUT = "logits"
MOST_BYTES = 1 << 30
"""What is kept of all texts."""
TEXT_BYTES = 64 * 2**20
"""What is kept of one text."""


def rows_of_text(vocabulary: int, texts: int) -> int:
    """Places of a text that are kept, so that all of them take no more than they may."""
    row = 4 * vocabulary
    return max(1, min(TEXT_BYTES // row, MOST_BYTES // (row * max(texts, 1))))


def ids_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.ids")


class LogitWriter:
    """Appends the logits of a text after the other; without a path it writes nothing, and `rows` is 0."""

    def __init__(self, path: Path | None, rows: int) -> None:
        self.rows = 0 if path is None else rows
        self._logits = saved_outputs.Writer(path)
        self._ids: IO[bytes] | None = None if path is None else ids_file(path).open("wb")

    def write(self, ids: Ids, rows: Sequence[Logits]) -> None:
        if self._ids is None:
            return
        np.save(self._ids, ids, allow_pickle=False)
        self._logits.write([{OUTPUT: np.concatenate(rows).astype(np.float32)}])

    def __enter__(self) -> LogitWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ids is not None:
            self._ids.close()
        self._logits.__exit__(kind, error, trace)


def read(path: Path, samples: int) -> Iterator[tuple[Ids, Logits]]:
    """The tokens of each text, and the logits that were kept of it."""
    with ids_file(path).open("rb") as stream:
        for ((logits,),) in saved_outputs.read(path, 1, samples):
            yield np.load(stream, allow_pickle=False), logits
