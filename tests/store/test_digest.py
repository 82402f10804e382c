from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winml.modelkit.core.errors import DataError
from winml.modelkit.store import digest


def test_a_file_has_the_digest_of_its_content(tmp_path: Path) -> None:
    path = tmp_path / "ü x"
    path.write_bytes(b"abc")
    assert digest.of_file(path) == digest.of_bytes(b"abc") == "sha256:" + hashlib.sha256(b"abc").hexdigest()


def test_one_file_counts_by_content_and_several_by_name_too() -> None:
    a, b = digest.of_bytes(b"a"), digest.of_bytes(b"b")
    assert digest.of_files({"model.onnx": a}) == a
    both = digest.of_files({"model.onnx": a, "model.onnx.data": b})
    assert both == digest.of_files({"model.onnx.data": b, "model.onnx": a})
    assert both != digest.of_files({"model.onnx": b, "model.onnx.data": a})
    assert both != digest.of_files({"model.onnx": a, "weights": b})


@given(st.binary(max_size=5000))
def test_copying_gives_the_digest_of_what_was_written(content: bytes) -> None:
    out = io.BytesIO()
    assert digest.copy(io.BytesIO(content), out) == (digest.of_bytes(content), len(content))
    assert out.getvalue() == content


@given(st.text(max_size=80))
def test_nothing_but_a_digest_passes_for_one(text: str) -> None:
    with pytest.raises(DataError):
        digest.check(text)


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=5))
def test_equal_values_give_equal_digests_whatever_their_order(value: dict[str, int]) -> None:
    assert digest.of_json(value) == digest.of_json(dict(reversed(value.items())))
