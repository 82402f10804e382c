"""What open dimensions are called, which are batches, and what a user may say of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.graph.inputs import InputRequest, InputSpec, synthetic
from winml.modelkit.graph.sizes import (
    INPUTS_KEY,
    is_batch,
    match_sizes,
    metadata_placeholders,
    metadata_ranges,
    metadata_sizes,
    missing_size_error,
    name_dims,
    open_dims,
    shape_words,
)


@dataclass(frozen=True)
class Value:
    name: str
    shape: tuple[int | str | None, ...]


IMAGE = Value("x", ("batch", 3, None, "width"))


def test_a_dimension_without_a_name_goes_by_its_place() -> None:
    assert name_dims("x", ("batch", 3, None, -1, "", 0)) == ("batch", 3, "x[2]", "x[3]", "x[4]", 0)


@pytest.mark.parametrize(
    ("shape", "batches"),
    [
        (("batch_size", "N"), {"batch_size"}),  # preprocessors of sound call the length of the signal N
        (("N", 3, "H", "W"), {"N"}),
        ((None, None), {"x[0]"}),
        (("unk__1", "unk__2"), {"unk__1"}),
        (("samples",), set()),
        ((None,), set()),
        (("sequence", "batch", 8), {"batch"}),
        ((2, "batch", 64), {"batch"}),
        (("height", "width", 3), set()),
        (("DynamicDimension.0", 3, "DynamicDimension.1", "DynamicDimension.2"), {"DynamicDimension.0"}),
    ],
)
def test_only_a_batch_is_a_batch(shape: tuple[int | str | None, ...], batches: set[str]) -> None:
    opened = open_dims([Value("x", shape)])
    assert {name for name, places in opened.items() if is_batch(name, places)} == batches


def test_sizes_are_given_by_name_by_place_and_by_whole_inputs() -> None:
    assert match_sizes([IMAGE], {"width": 320, "x[2]": 48}) == {"width": 320, "x[2]": 48}
    assert match_sizes([IMAGE], {"x[3]": 320}) == {"width": 320}
    assert match_sizes([IMAGE], shape_words("x", (1, 3, 48, 320))) == {"batch": 1, "x[2]": 48, "width": 320}
    assert match_sizes([Value("lengths", ("n",))], {"lengths": 4}) == {"n": 4}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"widht": 3}, "no symbolic dimension `widht`"),
        ({"x[1]": 4}, r"`x\[1\]` is fixed at 3 in the model, so it cannot be 4"),
        ({"x[4]": 4}, "has 4 dimensions"),
        ({"y[0]": 4}, "no symbolic dimension"),
        ({"width": 3, "x[3]": 4}, "two sizes: 3 and 4"),
        (shape_words("x", (1, 3, 48)), "has 4 dimensions but got 3 sizes"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(words: dict[str, int], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        match_sizes([IMAGE], words)


def test_inputs_are_not_made_while_a_size_is_open() -> None:
    spec = InputSpec("x", "tensor(float)", ("batch", 3, None, "width"))
    with pytest.raises(RequestError, match=r"dimensions `x\[2\]`, `width` have no size") as caught:
        synthetic([spec], InputRequest())
    assert "--dim x[2]=64 --dim width=224" in str(caught.value.hint)
    made = synthetic([spec], InputRequest(dims={"x[2]": 48, "x[3]": 320}))
    assert made["x"].shape == (1, 3, 48, 320)


def test_the_refusal_shows_options_that_a_shell_takes() -> None:
    error = missing_size_error(["height", "past length"])
    assert error.exit_code == 2
    assert f"--dim height=224 --dim {shell_word('past length')}=128" in str(error.hint)


def test_a_file_says_what_it_was_made_for_and_nonsense_says_nothing() -> None:
    noted = {"sizes": {"past": 63, "total": "x", "n": 0}, "ranges": {"ids": [0, 9], "mask": [1, 0], "z": 3}}
    metadata = {INPUTS_KEY: json.dumps(noted)}
    assert metadata_sizes(metadata) == {"past": 63}
    assert metadata_ranges(metadata) == {"ids": (0, 9)}
    words = {"ids": [9, 4], "mask": [9, 0], "other": [-1, 4], "more": [1], "huge": [2**40, 1], "text": "x"}
    noted = {INPUTS_KEY: json.dumps({"placeholders": words})}
    assert metadata_placeholders(noted) == {"ids": Placeholders(9, 4)}
    assert metadata_placeholders(metadata) == {}
    for text in ("", "[1]", "{", '{"sizes": 3}'):
        assert metadata_sizes({INPUTS_KEY: text}) == {}
