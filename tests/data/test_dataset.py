"""Folders, tables and what all sources have in common."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import data_zoo
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError, UnavailableError
from winml.modelkit.data.dataset import Dataset, open_dataset
from winml.modelkit.graph.inputs import InputSpec

IDS = InputSpec("input_ids", "tensor(int64)", ("batch", 6))
IMAGE = InputSpec("pixel_values", "tensor(float)", ("batch", 3, 8, 8))
X = InputSpec("x", "tensor(float)", ("batch", 2))


def opened(
    source: Path | str, spec: InputSpec, folder: Path | None = None, *, labels: bool = False, form: Any = "joined",
    **section: Any,
) -> Dataset:  # fmt: skip
    return open_dataset(DataSection(str(source), **section), (spec,), model_folder=folder, labels=labels, form=form)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return data_zoo.tokenizer(data_zoo.image_processor(tmp_path / "model"))


def test_random_inputs_are_the_same_for_a_seed_and_differ_among_themselves() -> None:
    first, again, other = (list(opened("random", X, limit=3, seed=seed)) for seed in (0, 0, 1))
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a.inputs["x"], b.inputs["x"])
        assert not np.array_equal(a.inputs["x"], c.inputs["x"])
    assert not np.array_equal(first[0].inputs["x"], first[1].inputs["x"])
    assert len(opened("random", X)) == 32
    with pytest.raises(DataError, match="no labels"):
        opened("random", X, labels=True)


def test_random_inputs_have_the_values_and_sizes_that_a_section_names() -> None:
    ids = InputSpec("input_ids", "tensor(int64)", ("batch", "sequence"))
    given: dict[str, Any] = {"ranges": {"x": (-3, -2), "input_ids": (7, 9), "gone": (0, 0)}, "dims": {"sequence": 50}}
    data = open_dataset(DataSection("random", limit=1, **given), (X, ids), model_folder=None, labels=False)
    inputs = next(iter(data)).inputs
    assert inputs["input_ids"].shape == (1, 50)
    assert set(inputs["input_ids"].flat) == {7, 8, 9}
    assert inputs["x"].dtype == np.float32
    assert ((inputs["x"] >= -3) & (inputs["x"] <= -2)).all()
    plain = open_dataset(DataSection("random", limit=1), (X, ids), model_folder=None, labels=False)
    assert data.digest != plain.digest


def test_a_source_that_is_not_there_or_not_known_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="data not found"):
        opened(tmp_path / "gone.csv", X)
    with pytest.raises(DataError, match="is not supported as data") as caught:
        opened(tmp_path / "x.avro", X)
    assert ".jsonl" in (caught.value.hint or "")


def test_folders_are_classes_and_a_limit_keeps_their_shares(tmp_path: Path, model: Path) -> None:
    folder = data_zoo.images(tmp_path / "pictures", {"cat": 8, "dog": 4})
    (folder / "cat" / "notes.txt").write_text("no image")
    data = opened(folder, IMAGE, model, labels=True, limit=6)
    assert sorted(s.label for s in data) == ["cat"] * 4 + ["dog"] * 2
    assert data.notes[0].startswith("1 file is skipped in ")
    assert {s.inputs["pixel_values"].shape for s in data} == {(1, 3, 8, 8)}
    assert len(opened(folder, IMAGE, model)) == 12


def test_the_digest_of_a_folder_knows_images_and_processor(tmp_path: Path, model: Path) -> None:
    folder = data_zoo.images(tmp_path / "pictures", {"cat": 2})
    first = opened(folder, IMAGE, model).digest
    (model / "preprocessor_config.json").write_text('{"size": {"height": 8, "width": 8}}')
    second = opened(folder, IMAGE, model).digest
    (folder / "cat" / "0.png").write_bytes((folder / "cat" / "1.png").read_bytes())
    assert len({first, second, opened(folder, IMAGE, model).digest}) == 3


def test_images_without_a_class_or_none_at_all_are_refused(tmp_path: Path, model: Path) -> None:
    folder = data_zoo.images(tmp_path / "pictures", {"": 2})
    assert len(opened(folder, IMAGE, model)) == 2
    with pytest.raises(DataError, match="has no class"):
        opened(folder, IMAGE, model, labels=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no images"):
        opened(tmp_path / "empty", IMAGE, model)


def test_a_broken_image_is_named_when_its_turn_comes(tmp_path: Path, model: Path) -> None:
    folder = data_zoo.images(tmp_path / "pictures", {"cat": 2})
    (folder / "cat" / "1.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"1\.png` is not a readable image"):
        list(opened(folder, IMAGE, model))


def test_lines_of_text_are_samples(tmp_path: Path, model: Path) -> None:
    (tmp_path / "t.txt").write_text("good film\n\n\nbad, dull\n", encoding="utf-8")
    assert [s.inputs["input_ids"][0, 1] for s in opened(tmp_path / "t.txt", IDS, model)] == [4, 5]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_tables_are_read_by_column(ending: str, tmp_path: Path, model: Path) -> None:
    path = tmp_path / f"t.{ending}"
    if ending == "jsonl":
        data_zoo.jsonl(path, [{"text": "good,\nfilm", "label": "1"}, {"text": "bad", "label": "0"}])
    else:
        comma = "," if ending == "csv" else "\t"
        path.write_text(f'\ufefftext{comma}label\r\n"good,\nfilm"{comma}1\r\nbad{comma}0\r\n', encoding="utf-8")
    data = opened(path, IDS, model, labels=True)
    assert data.columns == {"text": "text", "label": "label"}
    assert [(s.inputs["input_ids"][0, 1], s.label) for s in data] == [(4, "1"), (5, "0")]


def test_columns_can_be_named_and_pairs_are_found(tmp_path: Path, model: Path) -> None:
    path = data_zoo.jsonl(tmp_path / "t.jsonl", [{"a": "good", "sentence2": "bad", "gold": 0.5}])
    (sample,) = opened(path, IDS, model, labels=True, columns={"text": "a", "label": "gold"})
    assert sample.inputs["input_ids"][0].tolist() == [2, 4, 3, 5, 3, 0]
    data = opened(path, IDS, model, labels=True, form="apart", columns={"text": "a", "label": "gold"})
    assert data.notes == ("column `sentence2` is used as text_pair",)
    (apart,) = data
    assert [run["input_ids"][0, 1] for run in (apart.inputs, *apart.more)] == [4, 5]
    assert apart.label == 0.5


def test_a_table_may_hold_ready_inputs_or_name_image_files(tmp_path: Path, model: Path) -> None:
    (tmp_path / "t.csv").write_text('x,label\n"[1, 2]",a\n"[0.5, 3]",b\n', encoding="utf-8")
    assert [s.inputs["x"].tolist() for s in opened(tmp_path / "t.csv", X)] == [[[1.0, 2.0]], [[0.5, 3.0]]]
    data_zoo.images(tmp_path / "p", {"cat": 2})
    path = data_zoo.jsonl(tmp_path / "i.jsonl", [{"image": f"p/cat/{i}.png", "label": i} for i in range(2)])
    data = opened(path, IMAGE, model, labels=True)
    assert [s.label for s in data] == [0, 1]
    before = data.digest
    (tmp_path / "p" / "cat" / "0.png").write_bytes((tmp_path / "p" / "cat" / "1.png").read_bytes())
    assert opened(path, IMAGE, model, labels=True).digest != before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "has no samples"),
        ("t.csv", "text,label\n", "has no samples"),
        ("t.csv", "phrase,label\na,1\n", "no column for `text`"),
        ("t.csv", "text,other\na,1\n", "no column for `label`"),
        ("t.csv", "text,text\na,1\n", "names a column twice"),
        ("t.csv", "text,label\na,1\nb\n", "line 3 of .* has a different number of fields"),
        ("t.csv", 'text,label\n"a,1\n', "cannot be read as a table"),
        ("t.jsonl", '{"text": "a", "label": 1}\n{"text"\n', "line 2 of .* is not JSON"),
        ("t.jsonl", "[1]\n", "line 1 of .* is not a JSON object"),
        ("t.jsonl", '{"text": "a", "label": 1}\n{"text": "b"}\n', "sample 1 of .* has no `label`"),
        ("t.jsonl", '{"text": 5, "label": 1}\n', "must be text but got 5"),
    ],
)
def test_tables_that_do_not_fit_are_refused(name: str, content: str, message: str, tmp_path: Path, model: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(opened(tmp_path / name, IDS, model, labels=True))


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path, model: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"good\n\xff\xfe\n")
    with pytest.raises(DataError, match="not UTF-8 text"):
        opened(tmp_path / "t.txt", IDS, model)


@pytest.mark.posix("no mode bits forbid reading there")
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root can read everything")
@pytest.mark.parametrize("name", ["t.npz", "t.txt"])
def test_data_that_may_not_be_read_is_a_matter_of_the_machine(name: str, tmp_path: Path, model: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    (tmp_path / name).chmod(0)
    with pytest.raises(UnavailableError, match=name):
        opened(tmp_path / name, IDS, model)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(
        st.binary(max_size=80), st.text(alphabet='text,label"\n{}[]: \\\0a1', max_size=80).map(str.encode)
    )
)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "txt"])
def test_any_bytes_as_a_table_give_samples_or_our_error(
    ending: str, content: bytes, tmp_path: Path, model: Path
) -> None:
    path = tmp_path / f"t.{ending}"
    path.write_bytes(content)
    with contextlib.suppress(DataError):
        list(opened(path, IDS, model))


def test_json_of_any_depth_is_our_error(tmp_path: Path, model: Path) -> None:
    (tmp_path / "t.jsonl").write_text("[" * 200_000)
    with pytest.raises(DataError, match="line 1 of .* is not JSON"):
        opened(tmp_path / "t.jsonl", IDS, model)


def test_an_unknown_role_or_column_is_suggested(tmp_path: Path, model: Path) -> None:
    path = data_zoo.jsonl(tmp_path / "t.jsonl", [{"text": "good"}])
    with pytest.raises(DataError, match="unknown column role `txt`") as caught:
        opened(path, IDS, model, columns={"txt": "text"})
    assert "text" in (caught.value.hint or "")
    with pytest.raises(DataError, match="no column `texd`"):
        opened(path, IDS, model, columns={"text": "texd"})


@pytest.mark.parametrize(("module", "extra"), [("tokenizers", "text"), ("PIL.Image", "vision")])
def test_a_missing_package_names_the_extra(
    module: str, extra: str, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.txt").write_text("good\n")
    data_zoo.images(tmp_path / "p", {"cat": 1})
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnavailableError) as caught:
        list(opened(tmp_path / "t.txt", IDS, model) if extra == "text" else opened(tmp_path / "p", IMAGE, model))
    assert f"winml-modelkit[{extra}]" in (caught.value.hint or "")


def test_words_and_tags_must_be_as_many(tmp_path: Path, model: Path) -> None:
    path = data_zoo.jsonl(tmp_path / "d.jsonl", [{"tokens": ["good", "film"], "tags": ["O", "O", "O"]}])
    with pytest.raises(DataError, match="sample 0 of .* has 3 tags for 2 words"):
        next(iter(opened(path, IDS, model, labels=True, form="words")))
    with pytest.raises(DataError, match="sample 0 of .* has 3 tags for 2 words"):
        next(iter(opened(path, IDS, model, labels=None, form="words")))
    sample = next(iter(opened(path, IDS, model)))
    assert sample.words[:4] == (None, 0, 1, None)


def test_the_name_of_a_file_is_not_in_its_digest(tmp_path: Path, model: Path) -> None:
    row = {"text": "good", "label": 1}
    first, second = (data_zoo.jsonl(tmp_path / name, [row]) for name in ("a.jsonl", "b.jsonl"))
    assert opened(first, IDS, model).digest == opened(second, IDS, model).digest
