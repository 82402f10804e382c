from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.dataset import Dataset, open_dataset
from winml.modelkit.graph.inputs import InputSpec

X = InputSpec("x", "tensor(float)", ("batch", 3))
VALUES = np.arange(30, dtype=np.float32).reshape(10, 3)


def opened(path: Path, *inputs: InputSpec, labels: bool = False, form: Any = "joined", **section: Any) -> Dataset:
    return open_dataset(DataSection(str(path), **section), inputs or (X,), model_folder=None, labels=labels, form=form)


@pytest.fixture(params=["stored", "compressed"])
def npz(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    save = np.savez if request.param == "stored" else np.savez_compressed
    save(tmp_path / "d.npz", x=VALUES, label=np.arange(10))
    return tmp_path / "d.npz"


def test_rows_are_samples_with_a_batch_of_one_as_often_as_asked(npz: Path) -> None:
    data = opened(npz, labels=True)
    for _ in range(2):
        samples = list(data)
        assert len(samples) == len(data) == 10
        assert [s.label for s in samples] == list(range(10))
        np.testing.assert_array_equal(np.concatenate([s.inputs["x"] for s in samples]), VALUES)


def test_a_limit_takes_rows_and_labels_together(npz: Path) -> None:
    samples = list(opened(npz, labels=True, limit=4, seed=3))
    assert len(samples) == 4
    for sample in samples:
        np.testing.assert_array_equal(sample.inputs["x"][0], VALUES[sample.label])


def test_the_digest_knows_content_choice_and_seed_but_not_the_place(npz: Path, tmp_path: Path) -> None:
    first = opened(npz, limit=4).digest
    (tmp_path / "other").mkdir()
    moved = tmp_path / "other" / "d.npz"
    moved.write_bytes(npz.read_bytes())
    assert opened(moved, limit=4).digest == first
    assert len({first, opened(npz, limit=5).digest, opened(npz, limit=4, seed=1).digest, opened(npz).digest}) == 4
    np.savez(moved, x=VALUES + 1, label=np.arange(10))
    assert opened(moved, limit=4).digest != first


def test_data_that_changed_since_the_config_is_refused_with_both_digests(npz: Path) -> None:
    known = opened(npz).digest
    assert opened(npz, digest=known).digest == known
    with pytest.raises(DataError, match="is not the data of the config") as caught:
        opened(npz, digest="sha256:" + "0" * 64)
    assert known in caught.value.message
    assert "0" * 64 in caught.value.message


def test_memory_holds_one_row_however_large_the_file_is(tmp_path: Path) -> None:
    import tracemalloc

    np.savez_compressed(tmp_path / "d.npz", x=np.zeros((40_000, 256), np.float32))
    data = opened(tmp_path / "d.npz", InputSpec("x", "tensor(float)", (1, 256)), limit=400)
    tracemalloc.start()
    assert sum(1 for _ in data) == 400
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20


def test_numbers_of_one_kind_are_brought_to_the_type_of_the_model(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=VALUES.astype(np.float64), ids=np.arange(10, dtype=np.int64))
    half, small = InputSpec("x", "tensor(float16)", (1, 3)), InputSpec("ids", "tensor(int8)", (1,))
    sample = next(iter(opened(tmp_path / "d.npz", half, small)))
    assert (sample.inputs["x"].dtype, sample.inputs["ids"].dtype) == (np.float16, np.int8)


def test_a_model_without_a_batch_gets_the_row_itself(npz: Path) -> None:
    assert next(iter(opened(npz, InputSpec("x", "tensor(float)", (3,))))).inputs["x"].shape == (3,)


def test_two_texts_of_a_pair_are_two_runs(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=VALUES, x_pair=VALUES + 1, label=np.zeros(10))
    sample = next(iter(opened(tmp_path / "d.npz", form="apart", labels=True)))
    np.testing.assert_array_equal(sample.more[0]["x"], sample.inputs["x"] + 1)


@pytest.mark.parametrize(
    ("arrays", "spec", "message"),
    [
        ({"y": VALUES}, X, "no array for input `x`"),
        ({"x": VALUES}, X, "has no labels"),
        ({"x": VALUES, "label": np.arange(9)}, X, "different numbers of samples: `x` 10, `label` 9"),
        ({"x": VALUES[:0], "label": np.arange(0)}, X, "has no samples"),
        (
            {"x": VALUES, "label": np.arange(10)},
            InputSpec("x", "tensor(float)", (1, 4)),
            r"shape \[1, 4\].*has \[1, 3\]",
        ),
        (
            {"x": VALUES, "label": np.arange(10)},
            InputSpec("x", "tensor(float)", (2, 3)),
            r"shape \[2, 3\].*has \[1, 3\]",
        ),
        ({"x": VALUES, "label": np.arange(10)}, InputSpec("x", "tensor(int64)", (1, 3)), "must be int64 but sample 0"),
        ({"x": VALUES * np.nan, "label": np.arange(10)}, X, "sample 0 of .* has NaN"),
        (
            {"x": VALUES.astype(np.int64) + 300, "label": np.arange(10)},
            InputSpec("x", "tensor(uint8)", (1, 3)),
            "do not fit uint8",
        ),
        (
            {"x": VALUES * 1e30, "label": np.arange(10)},
            InputSpec("x", "tensor(float16)", (1, 3)),
            "sample 0 of .*do not fit float16",
        ),
        ({"x": np.asfortranarray(VALUES), "label": np.arange(10)}, X, "column order"),
        ({"x": np.array([{}]), "label": np.arange(1)}, X, "holds Python objects"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    arrays: dict[str, Any], spec: InputSpec, message: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(DataError, match=message):
        list(opened(tmp_path / "d.npz", spec, labels=True))


def test_a_file_that_ends_early_is_refused(npz: Path) -> None:
    whole = npz.read_bytes()
    npz.write_bytes(whole[:-40])
    with pytest.raises(DataError, match=r"not an \.npz"):
        opened(npz)


@settings(max_examples=40, deadline=None)
@given(place=st.integers(0, 400), value=st.integers(0, 255))
def test_any_damage_is_our_error_or_does_not_matter(
    place: int, value: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("npz") / "d.npz"
    np.savez_compressed(path, x=VALUES)
    content = bytearray(path.read_bytes())
    content[place % len(content)] = value
    path.write_bytes(content)
    with contextlib.suppress(DataError):
        list(opened(path))
