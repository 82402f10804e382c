"""What a path is: real runs of an earlier version, and everything that is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from winml.modelkit.core.errors import DataError, ModelkitError, RequestError
from winml.modelkit.reporting.runs import KINDS, find_kind, load_class, read_run
from winml.modelkit.store import journal

BEFORE = Path(__file__).parents[1] / "goldens" / "before"
RUNS = {
    "perf.json": "perf",
    "perf_op_trace.json": "op-trace",
    "compare.json": "compare",
    "eval.json": "eval",
    "search": "autoconfig",
    "stopped-search": "autoconfig",
    "sweep": "sweep",
    "matrix": "matrix-status",
    "contribution": "contribution",
    "int8": "build-folder",
}


@pytest.mark.parametrize(("name", "kind"), RUNS.items())
def test_runs_of_an_earlier_version_are_recognised_and_read(name: str, kind: str) -> None:
    assert find_kind(BEFORE / name) == kind
    run = read_run(BEFORE / name)
    assert (run.kind, run.failure) == (kind, None)
    assert type(run.value).__name__ == KINDS[kind].value.partition(":")[2]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_names_a_class_and_a_page_that_exist(kind: object) -> None:
    assert callable(load_class(kind.value))  # type: ignore[attr-defined]
    assert callable(load_class(f"render.pages.{kind.page}"))  # type: ignore[attr-defined]


def test_a_search_that_has_not_ended_is_read_from_its_journal() -> None:
    run = read_run(BEFORE / "stopped-search")
    assert not run.finished
    lines = journal.read(BEFORE / "stopped-search" / "journal.jsonl").records
    assert [trial.id for trial in run.value.trials] == [r["trial"]["id"] for r in lines if r["kind"] == "trial"]
    assert run.value.champion is None
    assert "running, or was interrupted" in run.value.ended


def test_what_the_journal_says_is_what_the_result_of_an_ended_search_says(tmp_path: Path) -> None:
    shutil.copy(BEFORE / "search" / "journal.jsonl", tmp_path)
    from_journal, ended = read_run(tmp_path).value, read_run(BEFORE / "search").value
    assert not from_journal.finished
    assert ended.finished
    assert from_journal.trials == ended.trials
    assert from_journal.pareto == ended.pareto
    assert from_journal.targets == ended.targets
    assert from_journal.environment == ended.environment


def test_a_journal_that_is_being_written_ends_with_its_last_whole_line(tmp_path: Path) -> None:
    content = (BEFORE / "search" / "journal.jsonl").read_bytes()
    whole = content.splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_bytes(b"".join(whole[:-1]) + whole[-1][:40])
    assert not read_run(tmp_path).finished
    (tmp_path / "journal.jsonl").write_bytes(whole[0][:40])
    with pytest.raises(RequestError, match="no whole line yet"):
        read_run(tmp_path)


def test_a_comparison_whose_gate_was_not_met_is_reported_with_the_reason(tmp_path: Path) -> None:
    content = json.loads((BEFORE / "compare.json").read_text(encoding="utf-8"))
    error = {"code": "check_failed", "message": "slower than the base by more than 2 %", "hint": None}
    (tmp_path / "c.json").write_text(json.dumps({**content, "ok": False, "error": error}))
    run = read_run(tmp_path / "c.json")
    assert run.failure == "slower than the base by more than 2 %"
    assert run.value.candidates


def test_a_command_that_failed_before_it_had_a_result_says_why(tmp_path: Path) -> None:
    failed = {"schema": "winml/perf/1", "ok": False, "error": {"message": "the model does not load"}}
    (tmp_path / "f.json").write_text(json.dumps(failed))
    with pytest.raises(DataError, match="a command that failed: the model does not load"):
        read_run(tmp_path / "f.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no run"),
        (b"{", "is no run"),
        (b"\x80\x81\x00", "is no run"),
        (b"[1, 2]", "not a JSON object"),
        (b"{}", "no schema of winml"),
        (b'{"schema": 7}', "no schema of winml"),
        (b'{"schema": "other/perf/1"}', "no schema of winml"),
        (b'{"schema": "winml/sys/1"}', "`winml/sys`, which has no report"),
        (b'{"schema": "winml/perf/2"}', "this version reads `winml/perf/1`"),
        (b'{"schema": "winml/perf/1", "ok": true}', "`perf.model` is missing"),
        (b'{"schema": "winml/kb/1", "action": "list"}', "has no report"),
        (b'{"schema": "winml/matrix/1", "action": ["run"]}', "has no report"),
        (b'{"schema": "winml/autoconfig/1"}', "is missing"),
    ],
)
def test_a_file_that_is_no_run_is_an_error_that_names_it(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_run(tmp_path / "x.json")
    assert "x.json" in caught.value.message


def test_a_folder_that_is_no_run_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="is no run") as caught:
        read_run(tmp_path)
    assert "the folder of a search" in (caught.value.hint or "")
    with pytest.raises(RequestError, match="not found"):
        read_run(tmp_path / "none")


def test_a_damaged_journal_is_an_error_and_not_a_shorter_search(tmp_path: Path) -> None:
    content = (BEFORE / "search" / "journal.jsonl").read_bytes()
    (tmp_path / "journal.jsonl").write_bytes(content.replace(b'"kind":"trial"', b'"kind":"tribl"', 1))
    with pytest.raises(ModelkitError, match="damaged in line"):
        read_run(tmp_path)
