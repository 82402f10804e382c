"""What an error of the runtime becomes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import model_zoo
from winml.modelkit.core.errors import DataError, SessionError
from winml.modelkit.core.target import Target
from winml.modelkit.session import failures
from winml.modelkit.session.session import WinMLSession


def test_qnn_error_1002_is_told_as_qnn_names_it_and_as_what_it_usually_is() -> None:
    said = (
        "Failed to finalize QNN graph. Error: QNN_COMMON_ERROR_MEM_ALLOC: Memory allocation related error., Code: 1002"
    )
    error = failures.opening(RuntimeError(said), Path("m.onnx"))
    assert isinstance(error, SessionError)
    assert "QNN_COMMON_ERROR_MEM_ALLOC" in error.message
    hint = error.hint or ""
    assert "QNN reports this as memory allocation (MEM_ALLOC, 1002)" in hint
    assert "usually an operator or type that the target cannot run" in hint


def test_an_index_that_an_input_holds_is_blamed_on_the_input(zoo: Path) -> None:
    session = WinMLSession(zoo / "embedding.onnx", target=Target("cpu", "cpu"))
    with session, pytest.raises(DataError, match="index 99 is out of bounds") as caught:
        session.run({"ids": np.array([[1, 99]], np.int64)})
    assert "input `ids` holds 99; see `--int-range`" in str(caught.value.hint)


def test_an_index_that_no_input_holds_is_blamed_on_the_sizes(tmp_path: Path) -> None:
    """A decoder counts positions from the size of its cache, and has a table of so many."""
    model = model_zoo.text_model(
        "g (float[past,2] cache) => (float[1,2] y) <float[4,2] table = {1,1,1,1,1,1,1,1}> "
        "{ position = Shape<start = 0, end = 1>(cache)  y = Gather(table, position) }"
    )
    session = WinMLSession(model_zoo.saved(model, tmp_path / "m.onnx"), target=Target("cpu", "cpu"))
    with session, pytest.raises(DataError, match="index 7 is out of bounds") as caught:
        session.run({"cache": np.zeros((7, 2), np.float32)})
    hint = str(caught.value.hint)
    assert "no input holds 7, so it must come from the sizes (`cache` [7, 2])" in hint
    assert "--dim" in hint
    assert "--int-range" not in hint
