"""What an error of the runtime becomes."""

from __future__ import annotations

from pathlib import Path

from winml.modelkit.core.errors import SessionError
from winml.modelkit.session import failures


def test_qnn_error_1002_is_told_as_qnn_names_it_and_as_what_it_usually_is() -> None:
    said = (
        "Failed to finalize QNN graph. Error: QNN_COMMON_ERROR_MEM_ALLOC: Memory allocation related error., Code: 1002"
    )
    error = failures.opening(RuntimeError(said), Path("m.onnx"))
    assert isinstance(error, SessionError)
    assert "QNN_COMMON_ERROR_MEM_ALLOC" in error.message
    hint = error.hint or ""
    assert "QNN calls this memory allocation (MEM_ALLOC, 1002)" in hint
    assert "usually an operator or type that the target cannot run" in hint
