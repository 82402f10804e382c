from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.core.errors import DataError, ModelkitError, RequestError
from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.graph.inputs import InputRequest, InputSpec, fitting, from_npz, synthetic

IMAGE = InputSpec("image", "tensor(float)", ("batch", 3, 8, 8))
IDS = InputSpec("ids", "tensor(int64)", ("batch", "sequence"))


def test_a_batch_defaults_to_one_and_dimensions_can_be_set() -> None:
    assert synthetic([IMAGE], InputRequest())["image"].shape == (1, 3, 8, 8)
    made = synthetic([IMAGE, IDS], InputRequest(dims={"sequence": 7}, batch_size=2))
    assert made["image"].shape == (2, 3, 8, 8)
    assert made["ids"].shape == (2, 7)


def test_the_same_seed_gives_the_same_inputs() -> None:
    first, again = (synthetic([IMAGE], InputRequest(seed=3))["image"] for _ in range(2))
    other = synthetic([IMAGE], InputRequest(seed=4))["image"]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_integers_stay_in_their_range_both_ends_included() -> None:
    asked = InputRequest(dims={"sequence": 500}, int_ranges={"ids": (5, 7)})
    assert set(synthetic([IDS], asked)["ids"].ravel()) == {5, 6, 7}


def test_words_that_stand_for_another_input_come_first_and_nowhere_else() -> None:
    asked = InputRequest(
        dims={"sequence": 200, "batch": 2}, int_ranges={"ids": (5, 7)}, placeholders={"ids": Placeholders(6, 3)}
    )
    ids = synthetic([IDS], asked)["ids"]
    assert (ids[:, :3] == 6).all()
    assert set(ids[:, 3:].ravel()) == {5, 7}
    assert ids.dtype == np.int64
    short = replace(asked, dims={"sequence": 2})
    assert synthetic([IDS], short)["ids"].tolist() == [[6, 6]]
    narrow = InputSpec("ids", "tensor(int8)", ("batch", "sequence"))
    with pytest.raises(RequestError, match="word 300, which stands for another input, does not fit"):
        synthetic([narrow], replace(asked, placeholders={"ids": Placeholders(300, 3)}))


def test_integers_are_zero_or_one_unless_a_range_is_given() -> None:
    assert set(synthetic([IDS], InputRequest(dims={"sequence": 100}))["ids"].ravel()) == {0, 1}


def test_a_range_for_all_gives_way_to_one_for_an_input() -> None:
    mask = InputSpec("mask", "tensor(int64)", (100,))
    asked = InputRequest(dims={"sequence": 100}, int_ranges={"": (3, 3), "mask": (1, 1)})
    made = synthetic([IDS, mask], asked)
    assert set(made["ids"].ravel()) == {3}
    assert set(made["mask"].ravel()) == {1}


def test_a_range_outside_the_type_is_refused() -> None:
    with pytest.raises(RequestError, match="does not fit"):
        synthetic([InputSpec("x", "tensor(uint8)", (2,))], InputRequest(int_ranges={"": (0, 300)}))


def test_an_unknown_dimension_or_input_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RequestError, match="`seq`") as caught:
        synthetic([IDS], InputRequest(dims={"seq": 3}))
    assert "`sequence`" in (caught.value.hint or "")
    with pytest.raises(RequestError, match="no input `idz`"):
        synthetic([IDS], InputRequest(int_ranges={"idz": (0, 1)}))


def test_a_fixed_batch_cannot_be_changed() -> None:
    fixed = InputSpec("x", "tensor(float)", (1, 3))
    assert synthetic([fixed], InputRequest(batch_size=1))["x"].shape == (1, 3)
    with pytest.raises(RequestError, match="fixed at 1"):
        synthetic([fixed], InputRequest(batch_size=4))


def test_the_batch_goes_to_the_dimension_called_batch() -> None:
    pixels = InputSpec("pixels", "tensor(float)", ("count", 3))
    made = synthetic([IDS, pixels], InputRequest(dims={"sequence": 7}, batch_size=4))
    assert made["ids"].shape == (4, 7)
    assert made["pixels"].shape == (1, 3)


def test_an_input_that_would_fill_the_machine_is_refused() -> None:
    with pytest.raises(DataError, match="GiB"):
        synthetic([InputSpec("x", "tensor(float)", (10**6, 10**6))], InputRequest())


@pytest.mark.parametrize(
    ("kind", "said", "hint"),
    [
        ("seq(tensor(float))", "`x` is a sequence of float32 tensors", r"`'x\[0\]'`|`x\[0\]`|x\[0\]"),
        ("optional(tensor(int64))", "`x` is an optional int64 tensor", "or none to leave it out"),
        ("optional(seq(tensor(string)))", "`x` is an optional sequence of str tensors", "or none to leave it out"),
        ("tensor(bfloat16)", r"type tensor\(bfloat16\), which numpy arrays cannot hold", "casts them itself"),
        ("sparse_tensor(float)", "which numpy arrays cannot hold", "its inputs are tensors"),
    ],
)
def test_what_no_synthetic_value_can_be_made_for_is_refused_with_the_way_to_give_it(
    kind: str, said: str, hint: str
) -> None:
    with pytest.raises(DataError, match=said) as caught:
        synthetic([InputSpec("x", kind, ())], InputRequest())
    assert re.search(hint, caught.value.hint or "")


def test_a_sequence_is_read_from_numbered_arrays_or_from_the_first_dimension_of_one(tmp_path: Path) -> None:
    spec = InputSpec("x", "seq(tensor(float))", ())
    ragged = [np.ones(3, np.float32), np.zeros((2, 2), np.float32)]
    np.savez(tmp_path / "numbered.npz", **{f"x[{n}]": array for n, array in enumerate(ragged)})
    np.savez(tmp_path / "stacked.npz", x=np.arange(6, dtype=np.float32).reshape(3, 2))
    numbered = from_npz(tmp_path / "numbered.npz", [spec])["x"]
    assert [array.shape for array in numbered] == [(3,), (2, 2)]
    assert [array.tolist() for array in from_npz(tmp_path / "stacked.npz", [spec])["x"]] == [[0, 1], [2, 3], [4, 5]]
    np.savez(tmp_path / "whole.npz", x=np.zeros((2, 2), np.int64))
    with pytest.raises(DataError, match="`x` must be float32"):
        from_npz(tmp_path / "whole.npz", [spec])


def test_an_optional_input_may_be_left_out_of_the_file(tmp_path: Path) -> None:
    spec = InputSpec("x", "optional(tensor(float))", ())
    np.savez(tmp_path / "other.npz", y=np.zeros(2, np.float32))
    assert from_npz(tmp_path / "other.npz", [spec]) == {"x": None}
    with pytest.raises(DataError, match="has no array for input `x`"):
        from_npz(tmp_path / "other.npz", [InputSpec("x", "tensor(float)", (2,))])


def test_a_single_number_keeps_its_shape() -> None:
    spec = InputSpec("x", "tensor(float)", ())
    assert fitting({"x": np.float32(2)}, [spec], source="it")["x"].shape == ()


@given(
    kind=st.sampled_from(["float", "double", "float16", "int8", "uint8", "int64", "bool", "uint16", "string"]),
    shape=st.lists(st.one_of(st.integers(0, 4), st.sampled_from(["a", "b", "batch"]), st.none()), max_size=4),
    batch=st.one_of(st.none(), st.integers(1, 3)),
)
def test_any_tensor_is_made_in_its_type_and_fits_itself(kind: str, shape: list[object], batch: int | None) -> None:
    spec = InputSpec("x", f"tensor({kind})", tuple(shape))  # type: ignore[arg-type]
    try:
        made = synthetic([spec], InputRequest(batch_size=batch))
    except RequestError as error:
        assert batch is not None or "only batch dimensions default to 1" in error.message
        return
    np.testing.assert_array_equal(fitting(made, [spec], source="itself")["x"], made["x"])


def test_npz_arrays_are_read_by_name(tmp_path: Path) -> None:
    path = tmp_path / "in put ü.npz"
    image = np.ones((2, 3, 8, 8), np.float32)
    np.savez(path, image=image, label=np.zeros(2))
    np.testing.assert_array_equal(from_npz(path, [IMAGE])["image"], image)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"picture": np.ones((1, 3, 8, 8), np.float32)}, "no array for input `image`"),
        ({"image": np.ones((1, 3, 8, 8))}, "must be float32 but"),
        ({"image": np.ones((1, 3, 8), np.float32)}, r"must have shape \[batch, 3, 8, 8\]"),
        ({"image": np.ones((1, 4, 8, 8), np.float32)}, "has .1, 4, 8, 8"),
    ],
)
def test_npz_that_does_not_fit_is_refused(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(DataError, match=message):
        from_npz(tmp_path / "x.npz", [IMAGE])


def test_one_symbol_has_one_size_over_all_inputs(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", image=np.ones((2, 3, 8, 8), np.float32), ids=np.ones((3, 4), np.int64))
    with pytest.raises(DataError, match="`batch` is 2 in one input and 3"):
        from_npz(tmp_path / "x.npz", [IMAGE, IDS])


@settings(max_examples=60)
@given(st.binary(max_size=200))
def test_any_bytes_as_npz_give_our_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("npz") / "x.npz"
    path.write_bytes(content)
    with pytest.raises(DataError):
        from_npz(path, [IMAGE])


def test_a_truncated_npz_and_a_missing_one_are_told_apart(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", image=np.ones((2, 3, 8, 8), np.float32))
    whole = (tmp_path / "x.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"not an \.npz"):
        from_npz(tmp_path / "cut.npz", [IMAGE])
    with pytest.raises(DataError, match="not found"):
        from_npz(tmp_path / "gone.npz", [IMAGE])


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", image=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ModelkitError, match=r"not an \.npz file of plain arrays"):
        from_npz(tmp_path / "x.npz", [IMAGE])


def test_synthetic_boxes_have_their_corners_in_order() -> None:
    boxes = synthetic([InputSpec("bbox", "tensor(int64)", (2, 50, 4))], InputRequest(int_ranges={"bbox": (0, 900)}))[
        "bbox"
    ]
    assert (boxes[..., :2] <= boxes[..., 2:]).all()
    assert boxes.min() >= 0
    assert len(np.unique(boxes)) > 50
