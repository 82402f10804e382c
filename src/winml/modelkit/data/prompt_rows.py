"""Rows of texts for models that generate: taken as they are, because the tokens are made where the model runs."""

from __future__ import annotations

from pathlib import Path

from winml.modelkit.core.errors import DataError
from winml.modelkit.data import processor
from winml.modelkit.data.row_plans import Columns, RowPlan, text_of, words_of
from winml.modelkit.data.samples import Sample, SampleRequest
from winml.modelkit.data.sources import Row
from winml.modelkit.data.text import TOKENIZER
from winml.modelkit.store import digest


def by_passage(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """A text, as long as it is."""
    text = columns.need("text")
    return RowPlan(lambda row, where: _sample(row, text, where), {"text": text}, _tokenizer_file(wanted.folder))


def by_prompt(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """A text to continue, to translate or to summarize; its label is the expected text, or a list of such."""
    prompt = columns.need("prompt")
    return RowPlan(lambda row, where: _sample(row, prompt, where), {"prompt": prompt}, _tokenizer_file(wanted.folder))


def by_options(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """A text with its possible continuations."""
    text, listed = columns.need("text"), columns.need("choices")

    def encode(row: Row, where: str) -> Sample:
        return Sample({}, about={"text": _text(row, text, where), "choices": words_of(row, listed, where)})

    return RowPlan(encode, {"text": text, "choices": listed}, _tokenizer_file(wanted.folder))


def _sample(row: Row, column: str, where: str) -> Sample:
    return Sample({}, about={"text": _text(row, column, where)})


def _text(row: Row, column: str, where: str) -> str:
    found = text_of(row, column, where)
    if not found:
        raise DataError(f"`{column}` of {where} is empty")
    return found


def _tokenizer_file(folder: Path | None) -> dict[str, str]:
    path = processor.find(folder, TOKENIZER)
    return {} if path is None else {path.name: digest.of_file(path)}
