"""JSON of others: whatever is wrong with it is one error."""

from __future__ import annotations

import json
import os
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winml.modelkit.core import json_text
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.json_text import JSONError, check_value, parse_json, read_json, read_object

DEEP = b"[" * 100_000
DAMAGE = {
    "nothing": (b"", "Expecting value"),
    "no JSON": (b"model", "Expecting value"),
    "nested more than a stack": (DEEP, "nested too deeply"),
    "nested more than code that walks over it": (b"[" * 101 + b"]" * 101, "more than 100 deep"),
    "objects in objects": (b'{"a":' * 200 + b"1" + b"}" * 200, "more than 100 deep"),
    "a key twice": (b'{"a": 1, "b": 2, "a": 3}', "'a' is given twice"),
    "not a number": (b"[NaN]", "NaN is not a JSON number"),
    "without end": (b"[-Infinity]", "-Infinity is not a JSON number"),
    "too large for a float": (b"[1e400]", "too large"),
    "too large for 64 bits": (b"[%d]" % 10**400, "too large"),
    "below 64 bits": (b"[%d]" % (-(2**63) - 1), "too large"),
    "more digits than Python reads": (b"[" + b"9" * 5000 + b"]", "digits"),
    "half of a character": (b'["\\ud800"]', "lone surrogate"),
    "half of a character in a name": (b'{"\\udc00": 1}', "lone surrogate"),
    "half of a character in bytes": (b'["\xed\xa0\x80"]', "lone surrogate"),
    "not UTF-8": (b'["\xff"]', "decode"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_ends_a_program_later_is_refused(name: str) -> None:
    raw, words = DAMAGE[name]
    with pytest.raises(JSONError, match=words):
        parse_json(raw)


@pytest.mark.parametrize("text", ["[NaN, Infinity]", '{"a": 1, "a": 2}', "[1000000000000000019884624838656]"])
def test_what_other_programs_write_is_read_where_it_is_theirs(text: str) -> None:
    with pytest.raises(JSONError):
        parse_json(text)
    assert repr(parse_json(text, lenient=True)) == repr(json.loads(text))


@pytest.mark.parametrize(
    "raw",
    [DEEP, b"[%d]" % 10**400, b'["\\ud800"]', b"[" * 101 + b"]" * 101],
    ids=["deep", "large number", "half a pair", "101 lists"],  # pytest puts an id into the environment: 32 K on Windows
)
def test_nobody_may_write_what_no_program_works_with(raw: bytes) -> None:
    with pytest.raises(JSONError):
        parse_json(raw, lenient=True)


@given(st.recursive(st.none() | st.booleans() | st.text() | st.integers(-(2**63), 2**64 - 1), st.lists, max_leaves=8))
def test_everything_else_is_what_the_standard_reader_says(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode("utf-16")) == value


@given(st.binary(max_size=60))
def test_bytes_are_a_value_or_one_error(raw: bytes) -> None:
    try:
        check_value(parse_json(raw))
    except JSONError as error:
        assert str(error)


def test_a_file_is_read_no_further_than_a_document_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"[" + b" " * 200 + b"]")
    assert read_json(path) == []
    with pytest.raises(JSONError, match="larger than the limit of 100 bytes"):
        read_json(path, max_bytes=100)
    with pytest.raises(DataError, match=r"a\.json` must hold a JSON object"):
        read_object(path)
    path.write_bytes(DEEP)
    with pytest.raises(DataError, match=r"a\.json` is not JSON: it is nested too deeply"):
        read_object(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threading.Thread(target=lambda: path.write_bytes(b'{"a": 1}'), daemon=True).start()
    assert read_json(path) == {"a": 1}


def test_the_limit_of_nesting_leaves_room_for_code_that_calls_itself() -> None:
    value = parse_json(b"[" * json_text.MAX_DEPTH + b"]" * json_text.MAX_DEPTH)
    assert json.loads(json.dumps(value)) == value


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_bytes(b"{}")
    tracemalloc.start()
    try:
        read_json(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
