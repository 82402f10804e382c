from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.core.errors import DataError, UnavailableError
from winml.modelkit.store.journal import Journal, encode, parse, read

RECORDS = st.lists(
    st.dictionaries(
        st.text(max_size=8),
        st.one_of(st.integers(-(2**63), 2**64 - 1), st.text(max_size=20), st.none(), st.booleans()),
        max_size=4,
    ),
    max_size=8,
)


def _content(records: list[dict[str, object]]) -> bytes:
    return b"".join(encode(i, r) for i, r in enumerate(records))


@given(RECORDS)
def test_what_was_written_is_read(records: list[dict[str, object]]) -> None:
    replay = parse(_content(records), source="x")
    assert list(replay.records) == records
    assert replay.torn is None


@given(RECORDS.filter(bool), st.data())
def test_a_journal_cut_anywhere_gives_the_whole_lines_before_the_cut(
    records: list[dict[str, object]], data: st.DataObject
) -> None:
    content = _content(records)
    cut = data.draw(st.integers(0, len(content)))
    replay = parse(content[:cut], source="x")
    whole = content[:cut].count(b"\n")
    assert list(replay.records) == records[:whole]
    assert (replay.torn or b"") == content[replay.good_bytes : cut]


@given(RECORDS.filter(lambda r: len(r) >= 2), st.data())
def test_damage_is_never_read_as_something_else(records: list[dict[str, object]], data: st.DataObject) -> None:
    content = bytearray(_content(records))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    try:
        replay = parse(bytes(content), source="x")
    except DataError as error:
        assert "line" in error.message
        return
    # Damage in the last line is a torn line; a flip that only changes spelling reads the same.
    assert list(replay.records) == records[: len(replay.records)]
    assert len(replay.records) >= len(records) - 1


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        parse(content, source="x")
    except DataError as error:
        assert error.exit_code == 2


def test_lines_out_of_order_or_missing_are_damage() -> None:
    lines = [encode(i, {"n": i}) for i in range(4)]
    for broken in (lines[:1] + lines[2:], [lines[0], lines[2], lines[1], lines[3]], [lines[0], *lines[:3]]):
        with pytest.raises(DataError, match="line 2"):
            parse(b"".join(broken), source="x")


def test_a_newer_schema_is_refused_by_name() -> None:
    line = encode(0, {}).replace(b"journal/1", b"journal/2")
    with pytest.raises(DataError, match="winml/journal/2"):
        parse(line + encode(1, {}), source="x")


def test_appending_continues_after_a_torn_line_which_is_kept_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(_content([{"a": 1}, {"a": 2}]) + b'{"schema": "winml/jour')
    with Journal(path) as journal:
        assert journal.replay.torn == b'{"schema": "winml/jour'
        assert list(journal.replay.records) == [{"a": 1}, {"a": 2}]
        journal.append({"a": 3})
    assert list(read(path).records) == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert (tmp_path / "j.jsonl.torn-2").read_bytes() == b'{"schema": "winml/jour'


def test_a_journal_has_one_writer_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append({"by": "first"})
        code = (
            f"from pathlib import Path\nfrom winml.modelkit.store.journal import Journal\nJournal(Path({str(path)!r}))"
        )
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
        assert "in use by another process" in other.stderr
        assert read(path).records == ({"by": "first"},)
    with Journal(path) as again:
        assert len(again.replay.records) == 1


def test_a_second_writer_in_the_same_process_is_refused_too(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.jsonl"), pytest.raises(UnavailableError):
        Journal(tmp_path / "j.jsonl")


def test_a_damaged_journal_is_not_opened_and_the_lock_is_free_again(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b"garbage\n" + encode(1, {}))
    for _ in range(2):
        with pytest.raises(DataError, match="line 1"):
            Journal(path)


def test_ctrl_c_in_an_append_leaves_no_record_that_nobody_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append({"n": 0})
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", interrupt)
            with pytest.raises(KeyboardInterrupt):
                journal.append({"n": "lost"})
        journal.append({"n": 1})
        journal.append({"n": 2})
    assert [r["n"] for r in read(path).records] == [0, 1, 2]


def test_a_journal_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert read(tmp_path / "none").records == ()
