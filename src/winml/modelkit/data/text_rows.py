"""Rows of texts that are more than one run of a model: gaps to fill, choices, passages to rank, words of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from winml.modelkit.core.errors import DataError
from winml.modelkit.data import processor
from winml.modelkit.data.arrays import as_input, without_axis
from winml.modelkit.data.images import image_encoder
from winml.modelkit.data.row_plans import Columns, RowPlan, content_of, text_of, value_of, words_of
from winml.modelkit.data.samples import Sample, SampleRequest, Spans
from winml.modelkit.data.sources import Row
from winml.modelkit.data.text import FIELDS, SETTINGS, TextEncoder, text_encoder
from winml.modelkit.graph.inputs import Input

GAP = "[MASK]"
"""How data writes a gap; the model's own mark for it is as good."""
MARKS = (GAP, "<mask>")
MOST_GAPS = 16
"""Words of a text that are left out in turn, a run of the model each."""
BOXES = "bbox"
EDGE = 1000
"""Boxes of words are thousandths of the page."""


def find_gap_mark(encoder: TextEncoder, wanted: SampleRequest) -> tuple[str, int]:
    """The model's token for a gap, and its number."""
    path = processor.find(wanted.folder, SETTINGS)
    named = (processor.read_object(path) if path else {}).get("mask_token")
    named = named.get("content") if isinstance(named, dict) else named
    for token in (named, *MARKS):
        if isinstance(token, str) and (number := encoder.tokenizer.token_to_id(token)) is not None:
            return token, int(number)
    raise DataError("the model's tokenizer has no token for a gap", hint=f"add `mask_token` to {SETTINGS}")


def by_gaps(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """A text with a gap and the word that is missing; or a text alone, whose words are left out in turn."""
    text, label = columns.need("text"), columns.find("label")
    encoder = text_encoder(wanted)
    ids = _ids_input(encoder.inputs)
    mark, number = find_gap_mark(encoder, wanted)

    def encode(row: Row, where: str) -> Sample:
        given = text_of(row, text, where)
        if label is None:
            encoding = encoder.tokens([given], where)
            places = [[place] for place in _spread(encoding.special_tokens_mask)]
        else:
            before, after = _around_gap(given, mark, where)
            answer = text_of(row, label, where).strip()
            encoding = encoder.tokens([f"{before}{answer}{after}"], where)
            start, end = len(before), len(before) + len(answer)
            spans = zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
            places = [[i for i, ((a, b), special) in enumerate(spans) if not special and a < end and b > start]]
        if not places or not all(places):
            raise DataError(f"{where} has no words that could be left out", hint="it may be cut before them: --length")
        arrays = encoder.arrays(encoding, where)
        runs = [{**arrays, ids.name: _with_gaps(arrays[ids.name], gaps, number)} for gaps in places]
        right = [[(place, int(encoding.ids[place])) for place in gaps] for gaps in places]
        return Sample(runs[0], label=right, more=tuple(runs[1:]))

    used = {"text": text} if label is None else {"text": text, "label": label}
    each = None if label else f"words are left out in turn, at most {MOST_GAPS} of a text, a run of the model each"
    note = "; ".join(n for n in (encoder.note, each) if n) or None
    return RowPlan(encode, used, encoder.files, note, complete=True)


def _ids_input(inputs: Sequence[Input]) -> Input:
    found = next((spec for spec in inputs if FIELDS[spec.name] == "ids"), None)
    if found is None:
        raise DataError("the model has no input for tokens", hint="texts fill `input_ids`")
    return found


def _around_gap(text: str, mark: str, where: str) -> tuple[str, str]:
    found = next((word for word in (mark, *MARKS) if text.count(word) == 1), None)
    if found is None:
        raise DataError(f"the text of {where} must have one gap, written {GAP}, but is {text!r:.80}")
    before, _, after = text.partition(found)
    return before, after


def _spread(special: Sequence[int]) -> list[int]:
    """Places of ordinary tokens, evenly spread where there are more than the most."""
    places = [place for place, mark in enumerate(special) if not mark]
    if len(places) <= MOST_GAPS:
        return places
    return [places[index * len(places) // MOST_GAPS] for index in range(MOST_GAPS)]


def _with_gaps(ids: Any, places: Sequence[int], number: int) -> Any:
    made = ids.copy()
    made[0, list(places)] = number
    return made


def by_choices(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """A text with its possible continuations, all in one run."""
    text, listed = columns.need("text"), columns.need("choices")
    for spec in wanted.inputs:
        if len(spec.shape) != 3:
            raise DataError(
                f"choices need inputs of batch, choice and token, but `{spec.name}` has {len(spec.shape)} dimensions"
            )
    encoder = text_encoder(replace(wanted, inputs=[without_axis(spec, 1) for spec in wanted.inputs]))

    def encode(row: Row, where: str) -> Sample:
        choices = words_of(row, listed, where)
        runs = [encoder.encode([text_of(row, text, where), choice], where) for choice in choices]
        stacked = {i.name: as_input(np.stack([run[i.name][0] for run in runs]), i, where) for i in wanted.inputs}
        return Sample(stacked, about={"choices": choices})

    return RowPlan(encode, {"text": text, "choices": listed}, encoder.files, encoder.note)


def by_passages(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """A question with passages, a run each; `positive` and `negative`, or `passages` with a `relevance` each."""
    query, passages = columns.need("query"), columns.find("passages")
    used = {"query": query}
    roles = ("positive", "negative") if passages is None else ("passages", "relevance")
    used |= {role: columns.need(role) for role in roles}
    encoder = text_encoder(wanted)

    def encode(row: Row, where: str) -> Sample:
        texts, grades = _read_grades(row, used, where)
        runs = [encoder.encode([text_of(row, query, where), text], where) for text in texts]
        return Sample(runs[0], label=grades, more=tuple(runs[1:]))

    return RowPlan(encode, used, encoder.files, encoder.note, complete=True)


def _read_grades(row: Row, used: dict[str, str], where: str) -> tuple[list[str], list[float]]:
    """The passages of a row, and how relevant each is."""
    if "passages" in used:
        texts, grades = words_of(row, used["passages"], where), value_of(row, used["relevance"], where)
        numbers = isinstance(grades, list) and all(
            isinstance(g, int | float) and not isinstance(g, bool) and g >= 0 for g in grades
        )
        if not numbers or len(grades) != len(texts):
            raise DataError(f"`{used['relevance']}` of {where} must have a number from 0 for each of its passages")
    else:
        right, wrong = (words_of(row, used[role], where) for role in ("positive", "negative"))
        texts, grades = [*wrong, *right], [0.0] * len(wrong) + [1.0] * len(right)
    if not any(grades):
        raise DataError(f"{where} has no relevant passage")
    return texts, [float(grade) for grade in grades]


def by_document(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """A question with the words of a page and their boxes, which are pixels of its image or thousandths."""
    used = {role: columns.need(role) for role in ("query", "words", "boxes")}
    tokens = [spec for spec in wanted.inputs if spec.name in FIELDS]
    seen = [spec for spec in wanted.inputs if spec.name not in (*FIELDS, BOXES)]
    boxes = next((spec for spec in wanted.inputs if spec.name == BOXES), None)
    if boxes is None:
        raise DataError(f"pages need a model with the input `{BOXES}`; texts alone are task `question-answering`")
    encoder = text_encoder(replace(wanted, inputs=tokens), split=True)
    pixels = image_encoder(replace(wanted, inputs=seen)) if seen else None
    image = columns.need("image") if pixels is not None else columns.find("image")
    if image is not None:
        used["image"] = image

    def encode(row: Row, where: str) -> Sample:
        words, asked = words_of(row, used["words"], where), text_of(row, used["query"], where).split()
        seen_page = None if image is None else content_of(wanted.path.parent, row, image, where)
        shown = None if pixels is None or seen_page is None else pixels.image(*seen_page)
        places = _boxes(row, used["boxes"], len(words), where)
        context, spans = _join(words)
        runs, found = [], []
        for encoding in encoder.page(asked, words, where):
            sides = list(zip(encoding.sequence_ids, encoding.word_ids, strict=True))
            there = [places[word] if side == 1 and word is not None else None for side, word in sides]
            separators = encoder.separators(encoding)
            grid = [box or ([EDGE] * 4 if sep else [0] * 4) for box, sep in zip(there, separators, strict=True)]
            arrays = {**encoder.arrays(encoding, where), BOXES: as_input(np.asarray(grid), boxes, where)}
            runs.append({**arrays, **(shown.inputs if shown else {})})
            found.append(tuple(spans[word] if side == 1 and word is not None else None for side, word in sides))
        return Sample(runs[0], None, tuple(runs[1:]), context, tuple(found))

    files = {**encoder.files, **(pixels.files if pixels else {})}
    return RowPlan(encode, used, files, encoder.note, (image,) if image else ())


def _boxes(row: Row, column: str, words: int, where: str) -> list[list[int]]:
    """Left, top, right and bottom of every word, in thousandths of the page."""
    given = value_of(row, column, where)
    whole = isinstance(given, list) and len(given) == words and all(
        isinstance(box, list) and len(box) == 4 and all(type(v) is int and 0 <= v <= EDGE for v in box) for box in given
    )  # fmt: skip
    if not whole:
        raise DataError(
            f"`{column}` of {where} must have left, top, right, bottom from 0 to {EDGE} for each of its {words} words",
            hint=f"boxes are thousandths of the width and height of the page: {EDGE} * x // width",
        )
    return list(given)


def _join(words: Sequence[str]) -> tuple[str, Spans]:
    """The words as one text, and where each of them lies in it."""
    spans, place = [], 0
    for word in words:
        spans.append((place, place + len(word)))
        place += len(word) + 1
    return " ".join(words), tuple(spans)


def by_asked(wanted: SampleRequest, columns: Columns) -> RowPlan:
    """An image with a question, in one run."""
    image, query = columns.need("image"), columns.need("query")
    tokens = [spec for spec in wanted.inputs if spec.name in FIELDS]
    seen = [spec for spec in wanted.inputs if spec.name not in FIELDS]
    if not tokens or not seen:
        names = ", ".join(f"`{spec.name}`" for spec in wanted.inputs)
        raise DataError(f"questions about images need inputs for tokens and for pixels; this model takes {names}")
    texts, pixels = text_encoder(replace(wanted, inputs=tokens)), image_encoder(replace(wanted, inputs=seen))

    def encode(row: Row, where: str) -> Sample:
        shown = pixels.image(*content_of(wanted.path.parent, row, image, where))
        return replace(shown, inputs={**shown.inputs, **texts.encode([text_of(row, query, where)], where)})

    note = "; ".join(n for n in (texts.note, pixels.note) if n) or None
    return RowPlan(encode, {"image": image, "query": query}, {**texts.files, **pixels.files}, note, (image,))
