"""Questions and the texts that answers are looked for in, as BEIR lays them out in a folder."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.limits import HINT, text_bytes
from winml.modelkit.data import processor
from winml.modelkit.data.samples import Sample, SampleRequest, SampleSource
from winml.modelkit.data.selection import choose
from winml.modelkit.data.text import text_encoder
from winml.modelkit.store import digest

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv"
PROMPTS = "config_sentence_transformers.json"
"""Where sentence-transformers writes what is put before questions and texts."""
_QUERY_PROMPTS, _TEXT_PROMPTS = ("query",), ("document", "passage", "corpus")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    most = text_bytes()
    with path.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(iter(lambda: stream.readline(most + 1), ""), 1):
            if len(line) > most:
                raise DataError(f"line {number} of `{path}` is longer than {most} characters", hint=HINT)
            if not line.strip():
                continue
            try:
                row = parse_json(line, lenient=True)
            except ValueError as error:
                raise DataError(f"line {number} of `{path}` is not JSON: {error}") from error
            if not isinstance(row, dict) or not isinstance(row.get("text"), str) or row.get("_id") is None:
                raise DataError(f"line {number} of `{path}` must be an object with `_id` and `text`")
            yield row


def _grades(path: Path) -> dict[str, dict[str, float]]:
    """Question -> text -> how relevant it is, where it is."""
    found: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8-sig", newline="") as stream:
        for number, row in enumerate(csv.reader(stream, delimiter="\t"), 1):
            if number == 1 and row[-1:] == ["score"]:
                continue
            try:
                query, text, grade = row[0], row[1], float(row[2])
            except (IndexError, ValueError) as error:
                raise DataError(f"line {number} of `{path}` must have question, text and score") from error
            if grade > 0:
                found.setdefault(query, {})[text] = grade
    return found


def _prompt(folder: Path | None, names: tuple[str, ...]) -> str:
    path = processor.find(folder, PROMPTS)
    prompts = processor.read_object(path).get("prompts") if path else None
    found = [prompts.get(name) for name in names] if isinstance(prompts, dict) else []
    return next((text for text in found if isinstance(text, str)), "")


def read(wanted: SampleRequest) -> SampleSource:
    """The questions that have a relevant text, then all texts, a run of the model each."""
    folder = wanted.path.parent if wanted.path.is_file() else wanted.path
    paths = {name: folder / name for name in (CORPUS, QUERIES, QRELS)}
    for name, path in paths.items():
        if not path.is_file():
            raise DataError(f"`{folder}` has no {name}", hint=f"retrieval needs {CORPUS}, {QUERIES} and {QRELS}")
    grades = _grades(paths[QRELS])
    queries = [row for row in _rows(paths[QUERIES]) if str(row["_id"]) in grades]
    if not queries:
        raise DataError(f"no question of `{paths[QUERIES]}` has a relevant text in `{paths[QRELS]}`")
    texts = sum(1 for _ in _rows(paths[CORPUS]))
    encoder = text_encoder(wanted)
    chosen = choose(len(queries), wanted.section.limit, wanted.section.seed)
    before, ahead = _prompt(wanted.folder, _QUERY_PROMPTS), _prompt(wanted.folder, _TEXT_PROMPTS)

    def samples() -> Iterator[Sample]:
        for index in chosen:
            row, where = queries[index], f"question {queries[index]['_id']} of `{paths[QUERIES]}`"
            made = Sample(encoder.encode([before + row["text"]], where), about={"query": str(row["_id"])})
            yield made.with_label(grades[str(row["_id"])], where)
        for row in _rows(paths[CORPUS]):
            where = f"text {row['_id']} of `{paths[CORPUS]}`"
            title = row.get("title")
            text = f"{title} {row['text']}" if isinstance(title, str) and title else row["text"]
            made = Sample(encoder.encode([ahead + text], where), where=where)
            yield replace(made, about={"text": str(row["_id"])})

    content = {**{name: digest.of_file(path) for name, path in paths.items()}, **encoder.files}
    said = [
        f"`{p}` is put before {what}, as {PROMPTS} says" for p, what in ((before, "questions"), (ahead, "texts")) if p
    ]
    notes = tuple(n for n in (encoder.note, *said) if n)
    return SampleSource(len(chosen), samples, content, notes=notes, unjudged=texts)
