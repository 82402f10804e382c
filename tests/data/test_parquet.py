"""Rows of parquet files, as data sets of the hub are stored."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import data_zoo
from parquet_zoo import class_feature, file_type, parquet, png, stored
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError, UnavailableError
from winml.modelkit.data.dataset import list_columns, open_dataset
from winml.modelkit.data.samples import NamedClass
from winml.modelkit.data.tables import open_table
from winml.modelkit.evaluation.labels import ClassNames
from winml.modelkit.graph.inputs import InputSpec

pytestmark = pytest.mark.parquet
NUMBERS = (InputSpec("x", "tensor(float)", ("batch", 2)),)
PIXELS = (InputSpec("pixel_values", "tensor(float)", ("batch", 3, "height", "width")),)


def opened(path: Path, inputs: tuple[InputSpec, ...] = NUMBERS, folder: Path | None = None, **section: Any) -> Any:
    return open_dataset(DataSection(str(path), **section), inputs, model_folder=folder, labels=True)


def test_a_table_gives_the_samples_that_the_same_rows_as_json_give(tmp_path: Path) -> None:
    rows = [{"x": [float(n), 1.0], "label": n % 3, "unused": "u" * n} for n in range(23)]
    here = opened(parquet(tmp_path / "d.parquet", rows, group=5), limit=9, seed=4)
    there = opened(data_zoo.jsonl(tmp_path / "d.jsonl", rows), limit=9, seed=4)
    assert len(here) == len(there) == 9
    for mine, other in zip(here, there, strict=True):
        assert (mine.inputs["x"] == other.inputs["x"]).all()
        assert mine.label == other.label
        assert mine.where.replace("parquet", "jsonl") == other.where
    assert here.columns == there.columns


def test_columns_that_nobody_uses_are_not_read(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "d.parquet"
    columns = {"x": [[1.0, 2.0]] * 4, "label": [1] * 4, "other": ["a word that stands nowhere else"] * 4}
    pq.write_table(pa.table(columns), path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = path.read_bytes()
    foot = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:foot].replace(b"nowhere", b"damaged") + content[foot:])
    assert [sample.label for sample in opened(path)] == [1] * 4
    with pytest.raises(DataError, match="is not a readable .parquet file"):
        list(open_table(path).rows(("other",), None))


def test_parts_without_a_wanted_row_are_not_read(tmp_path: Path) -> None:
    path = parquet(tmp_path / "d.parquet", [{"n": number} for number in range(10)], group=3)
    table = open_table(path)
    asked: list[int] = []
    read_group: Callable[..., Any] = table._read_group  # type: ignore[attr-defined]

    def watch(file: Any, group: int, *rest: Any) -> Any:
        asked.append(group)
        return read_group(file, group, *rest)

    table._read_group = watch  # type: ignore[attr-defined]
    assert list(table.rows(("n",), [1, 2, 9])) == [(1, {"n": 1}), (2, {"n": 2}), (9, {"n": 9})]
    assert asked == [0, 3]


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_a_field_of_a_column_has_a_name(ending: str, tmp_path: Path) -> None:
    rows = [{"given": {"x": [1.0, 2.0], "deep": {"label": 7}}}, {"given": {"x": [3.0, 4.0], "deep": {"label": 8}}}]
    path = tmp_path / f"d.{ending}"
    parquet(path, rows) if ending == "parquet" else data_zoo.jsonl(path, rows)
    assert list_columns(DataSection(str(path))) == (
        "given", "given.x", "given.deep", "given.deep.label",
    )  # fmt: skip
    found = list(opened(path, columns={"x": "given.x", "label": "given.deep.label"}))
    assert [(sample.inputs["x"].tolist(), sample.label) for sample in found] == [([[1.0, 2.0]], 7), ([[3.0, 4.0]], 8)]
    with pytest.raises(DataError, match="has no column `given.y`"):
        opened(path, columns={"x": "given.y", "label": "given.deep.label"})


def test_images_lie_in_rows_and_names_of_another_machine_are_never_opened(tmp_path: Path) -> None:
    data_zoo.image_processor(tmp_path)
    there = data_zoo.image(tmp_path / "there.png", (4, 4), 9)
    rows = [{"image": stored(png(255), str(there)), "label": 1}, {"image": stored(png(0), None), "label": 0}]
    path = parquet(tmp_path / "d.parquet", rows, types={"image": file_type()})
    data = opened(path, PIXELS, tmp_path)
    assert [float(sample.inputs["pixel_values"].max()) for sample in data] == [1.0, 0.0]
    assert list_columns(DataSection(str(path))) == ("image", "label")
    empty = parquet(
        tmp_path / "e.parquet", [{"image": stored(None, str(there)), "label": 1}], types={"image": file_type()}
    )
    with pytest.raises(DataError, match="holds the name of a file but not the file"):
        list(opened(empty, PIXELS, tmp_path))
    broken = parquet(tmp_path / "b.parquet", [{"image": stored(b"no image"), "label": 1}], types={"image": file_type()})
    with pytest.raises(DataError, match="`image` of sample 0 of `.*b.parquet` is not a readable image"):
        list(opened(broken, PIXELS, tmp_path))


def test_a_file_in_a_row_is_no_larger_than_a_sample_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    data_zoo.image_processor(tmp_path)
    path = parquet(tmp_path / "d.parquet", [{"image": bytes(5000), "label": 1}], types={"image": pa.binary()})
    monkeypatch.setenv("WINML_MAX_SAMPLE", "4000")
    with pytest.raises(DataError, match="row 0 of .* would take") as caught:
        list(opened(path, PIXELS, tmp_path))
    assert "--max-sample" in (caught.value.hint or "")


def test_classes_have_the_names_that_the_file_gives_them(tmp_path: Path) -> None:
    features = {
        "label": class_feature("cat", "dog"),
        "tags": {"feature": class_feature("O", "B-PER"), "length": -1, "_type": "Sequence"},
        "more": [class_feature("a", "b")],
    }
    rows = [{"label": 1, "tags": [1, 0], "more": [0]}, {"label": -1, "tags": [], "more": [1]}]
    path = parquet(tmp_path / "d.parquet", rows, features=features)
    first, second = (row for _, row in open_table(path).rows(None, None))
    assert isinstance(first["label"], NamedClass)
    assert first["label"].name == "dog"
    assert [tag.name for tag in first["tags"]] == ["B-PER", "O"]
    assert second["more"][0].name == "b"
    assert type(second["label"]) is int  # no class has this number


def test_a_class_of_the_data_is_the_model_s_of_that_name_or_an_error() -> None:
    dog = NamedClass(1, "dog_house")
    assert ClassNames({}).number(dog, 2, "s") == 1
    assert ClassNames({"LABEL_0": 0, "LABEL_1": 1}).number(dog, 2, "s") == 1
    assert ClassNames({"Dog house": 0, "cat": 1}).number(dog, 2, "s") == 0
    with pytest.raises(DataError, match="the model has no class `dog_house`, the label of s"):
        ClassNames({"dog": 1, "cat": 0}).number(dog, 2, "s")


def test_objects_of_lists_are_found_with_their_names(tmp_path: Path) -> None:
    from winml.modelkit.data.samples import Sample
    from winml.modelkit.evaluation.object_detection import objects

    feature = {"feature": {"category": class_feature("dog", "cat")}, "_type": "Sequence"}
    rows = [{"objects": {"bbox": [[0.0, 0.0, 2.0, 3.0], [1.0, 1.0, 2.0, 2.0]], "category": [1, 0]}}]
    path = parquet(tmp_path / "d.parquet", rows, features={"objects": feature})
    ((_, row),) = open_table(path).rows(None, None)
    found = objects(Sample({}, row["objects"]), ClassNames({"cat": 0, "dog": 1}), 2)
    assert [(one.number, one.box) for one in found] == [(0, (0.0, 0.0, 2.0, 3.0)), (1, (1.0, 1.0, 2.0, 2.0))]


def test_a_missing_package_is_named_and_other_data_does_not_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"x": [1.0, 2.0], "label": 0}]
    path = parquet(tmp_path / "d.parquet", rows)
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    assert len(opened(data_zoo.jsonl(tmp_path / "d.jsonl", rows))) == 1
    with pytest.raises(UnavailableError, match="reading .parquet needs the Python package `pyarrow`") as caught:
        opened(path)
    assert "winml-modelkit[parquet]" in (caught.value.hint or "")


def _not_parquet(path: Path) -> None:
    path.write_bytes(b"PAR1 this is no such file PAR1")


def _cut(path: Path) -> None:
    parquet(path, [{"x": [1.0, 2.0], "label": 0}] * 9)
    path.write_bytes(path.read_bytes()[:-20])


def _deep(path: Path) -> None:
    import pyarrow as pa

    value, kind = 1.0, pa.float32()
    for _ in range(20):
        value, kind = [value], pa.list_(kind)
    parquet(path, [{"x": value, "label": 0}], types={"x": kind})


def _claims(path: Path) -> None:
    parquet(path, [{"x": [1.0, 2.0], "label": 0}] * 9)


def _empty(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": pa.array([], pa.float32())}), path)


def _no_json(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1.0]}).replace_schema_metadata({"huggingface": "{"}), path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_not_parquet, "is not a readable .parquet file"),
        (_cut, "is not a readable .parquet file"),
        (_deep, "column `x` of .* is nested deeper than 16 levels"),
        (_claims, "has 9 rows; at most 8 are read"),
        (_empty, "has no samples"),
        (_no_json, "what `.*` says of its columns is not JSON"),
    ],
)
def test_files_that_cannot_be_right_are_one_error(
    make: Callable[[Path], None], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.parquet"
    make(path)
    # Equal rows take no room: a file of a few kilobytes may hold a billion of them.
    monkeypatch.setattr("winml.modelkit.data.parquet.MOST_ROWS", 8)
    with pytest.raises(DataError, match=message):
        list(opened(path))


def test_what_the_file_says_of_its_columns_may_be_anything(tmp_path: Path) -> None:
    for features in ([], {"label": 3}, {"label": {"_type": "ClassLabel", "names": "ab"}}, {"x": {"feature": None}}):
        path = parquet(tmp_path / "d.parquet", [{"x": [1.0, 2.0], "label": 0}], features=features)  # type: ignore[arg-type]
        assert [sample.label for sample in opened(path)] == [0]
