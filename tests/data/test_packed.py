"""JSONL that is packed by gzip, and corpora with rows that have no text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import data_zoo
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.dataset import list_columns, open_dataset
from winml.modelkit.graph.inputs import InputSpec

NUMBERS = (InputSpec("x", "tensor(float)", ("batch", 2)),)


def packed(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def opened(path: Path, **section: Any) -> Any:
    return open_dataset(DataSection(str(path), **section), NUMBERS, model_folder=None, labels=True)


def test_a_packed_table_is_the_table(tmp_path: Path) -> None:
    rows = [{"x": [float(number), 1.0], "label": number} for number in range(9)]
    path = packed(tmp_path / "d.jsonl.gz", rows)
    plain = opened(data_zoo.jsonl(tmp_path / "d.jsonl", rows), limit=4)
    assert [s.label for s in opened(path, limit=4)] == [s.label for s in plain]
    assert list_columns(DataSection(str(path))) == ("x", "label")


def test_a_packed_table_that_is_cut_or_none_is_one_error(tmp_path: Path) -> None:
    whole = packed(tmp_path / "d.jsonl.gz", [{"x": [1.0, 2.0], "label": 0}] * 50).read_bytes()
    for content in (whole[:-9], b"no gzip at all"):
        path = tmp_path / "e.jsonl.gz"
        path.write_bytes(content)
        with pytest.raises(DataError, match="is not a whole file of gzip"):
            opened(path)


def test_a_packed_table_becomes_no_larger_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path / "d.jsonl.gz", [{"x": [1.0, 2.0], "label": 0}] * 20_000)
    assert path.stat().st_size < 10_000
    monkeypatch.setenv("WINML_MAX_SAMPLE", "2000")
    with pytest.raises(DataError, match="becomes larger than 32000 bytes when it is unpacked") as caught:
        opened(path)
    assert "--max-sample" in (caught.value.hint or "")


def test_what_else_is_packed_is_not_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not supported as data") as caught:
        opened(tmp_path / "d.tar.gz")
    assert ".jsonl.gz, .parquet" in (caught.value.hint or "")


def test_rows_of_a_corpus_without_text_are_left_out_and_said(tmp_path: Path) -> None:
    data_zoo.tokenizer(tmp_path)
    path = data_zoo.jsonl(tmp_path / "d.jsonl", [{"text": text} for text in ("", "good film", " \n", "ada wrote it")])
    found = open_dataset(DataSection(str(path)), (), model_folder=tmp_path, labels=False, form="passage")
    assert [(sample.about["text"], sample.where.split(" of ")[0]) for sample in found] == [
        ("good film", "sample 1"), ("ada wrote it", "sample 3"),
    ]  # fmt: skip
    assert found.notes == ("2 of 4 rows have no text and are left out",)
    one = open_dataset(DataSection(str(path), limit=1), (), model_folder=tmp_path, labels=False, form="passage")
    assert len(list(one)) == 1
    blank = data_zoo.jsonl(tmp_path / "e.jsonl", [{"text": ""}])
    with pytest.raises(DataError, match="has no text in column `text`"):
        open_dataset(DataSection(str(blank)), (), model_folder=tmp_path, labels=False, form="passage")
