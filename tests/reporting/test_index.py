"""Which runs are found below a folder, and how little of them is read for it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.reporting import index as indexes
from winml.modelkit.reporting.head import LONG, leading_keys
from winml.modelkit.reporting.index import Index, IndexedRun, find_link, make_stamp
from winml.modelkit.reporting.served_files import check_inside, list_below, open_inside

BEFORE = Path(__file__).parents[1] / "goldens" / "before"
PERF = (BEFORE / "perf.json").read_text(encoding="utf-8")
TINY = "/tmp/winml-before/tiny.onnx"

# The first keys

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.dictionaries(st.text("abc_ é{}[],:", max_size=5), _VALUES, max_size=5), st.data())
def test_the_first_keys_of_a_text_that_ends_anywhere_are_those_of_the_whole(
    value: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 1])), ensure_ascii=False)
    assert leading_keys(text) == value
    found = leading_keys(text[: data.draw(st.integers(0, len(text)))])
    assert list(found) == list(value)[: len(found)]
    whole = list(found)[:-1]  # the last one may be cut
    assert {name: found[name] for name in whole} == {name: value[name] for name in whole}


@given(st.text(max_size=40) | st.sampled_from(["[" * 5000, '{"a":' * 5000, '{"a":[' + "1" * 5000]))
def test_any_text_has_first_keys_or_none(text: str) -> None:
    assert isinstance(leading_keys(text), dict)


def test_of_a_value_that_is_cut_off_its_beginning_is_known() -> None:
    assert leading_keys('{"base": {"label": "m.onnx", "target": "cpu", "x": [{"a": 1}, {"b"') == {
        "base": {"label": "m.onnx", "target": "cpu", "x": [{"a": 1}, {}]}
    }


# What is found


def _runs(root: Path) -> dict[str, IndexedRun]:
    return {run.name: run for run in Index(root, pause_s=0).find_runs().runs}


@pytest.mark.parametrize(
    ("name", "kind", "models", "targets", "state"),
    [
        ("perf.json", "perf", ("tiny.onnx",), ("cpu",), "finished"),
        ("compare.json", "compare", ("deep.onnx",), ("cpu",), "finished"),
        ("eval.json", "eval", ("int8",), ("cpu",), "finished"),
        ("perf_op_trace.json", "trace", (TINY,), ("cpu",), "finished"),
        ("search", "autoconfig", (TINY,), ("cpu",), "finished"),
        ("matrix", "matrix", ("tiny", "small"), ("cpu", "dml/gpu"), "not finished"),
        ("sweep", "sweep", (TINY, "/tmp/winml-before/small.onnx"), (), "finished"),
        ("int8", "build", (TINY,), ("cpu",), "finished"),
        ("contribution", "contribution", ("wide.onnx",), ("cpu",), "finished"),
        ("own", "kb", (), (), "finished"),
    ],
)
def test_runs_of_every_kind_are_found(
    name: str, kind: str, models: tuple[str, ...], targets: tuple[str, ...], state: str
) -> None:
    run = _runs(BEFORE)[name]
    assert (run.kind, run.models, run.targets, run.state, run.reason) == (kind, models, targets, state, None)
    assert run.path == BEFORE.resolve() / name
    assert run.changed_ns == max(changed for _, changed, _ in make_stamp(run))


def test_a_search_without_result_is_not_finished_and_named_by_its_journal() -> None:
    run = _runs(BEFORE)["stopped-search"]
    assert run.state == "not finished"
    assert run.models[0].startswith("sha256:4ea8f966")


def test_what_lies_in_a_run_is_listed_only_where_it_is_one_itself() -> None:
    runs = _runs(BEFORE)
    inside = {run.name: run.inside for run in runs.values() if run.inside is not None}
    assert inside == {
        "matrix/tiny/mlas_cpu": runs["matrix"].id,
        "sweep/tiny": runs["sweep"].id,
        "sweep/small": runs["sweep"].id,
    }
    assert not [name for name in runs if name.startswith(("search/", "contribution/", "int8/", "cache/"))]


def test_a_root_that_is_a_run_is_listed() -> None:
    assert _runs(BEFORE / "search")["."].kind == "autoconfig"
    assert {name: run.kind for name, run in _runs(BEFORE / "matrix").items()} == {
        ".": "matrix",
        "tiny/mlas_cpu": "build",
    }


def test_a_matrix_has_failed_when_nothing_is_left_and_a_cell_failed(tmp_path: Path) -> None:
    from winml.modelkit.build_matrix.state import Build, Upload, make_record
    from winml.modelkit.core.values import to_json
    from winml.modelkit.store.journal import Journal

    shutil.copy(BEFORE / "matrix" / "journal.jsonl", tmp_path)
    (cell,) = _runs(tmp_path).values()
    assert cell.state == "not finished"
    versions = [f"0.0.0-20260101-{one}" for one in ("dml-gpu-tiny", "mlas-cpu-small", "dml-gpu-small")]
    with Journal(tmp_path / "journal.jsonl") as journal:
        for version in versions:
            journal.append(to_json(make_record(version, Build("ok", "complete", 1.0, "2026-11-17T02:08:15.000+00:00"))))
            happened = Upload("failed" if version == versions[0] else "uploaded", "folder:matrix-feed", "2026", None)
            journal.append(to_json(make_record(version, happened)))
    (cell,) = _runs(tmp_path).values()
    assert (cell.state, cell.reason) == ("failed", "1 of 4 cells failed")


def test_a_search_is_finished_when_its_result_says_so(tmp_path: Path) -> None:
    shutil.copytree(BEFORE / "search", tmp_path / "s")
    result = tmp_path / "s" / "autoconfig.json"
    text = result.read_text(encoding="utf-8")
    result.write_text(text.replace('"finished": true', '"finished": false'), encoding="utf-8")
    assert _runs(tmp_path)["s"].state == "not finished"
    result.unlink()
    assert _runs(tmp_path)["s"].state == "not finished"


def test_simulated_targets_say_so(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(PERF.replace('"simulated": false', '"simulated": true', 1), encoding="utf-8")
    assert _runs(tmp_path)["p.json"].targets == ("cpu (simulated)",)


# What cannot be read


def _written(folder: Path, **files: str | bytes) -> dict[str, IndexedRun]:
    for name, content in files.items():
        raw = content.encode() if isinstance(content, str) else content
        (folder / f"{name}.json").write_bytes(raw)
    return _runs(folder)


def test_bad_files_are_listed_with_the_reason(tmp_path: Path) -> None:
    error = {"code": "x", "message": "no kernel for `Foo`", "hint": None, "exit": 1}
    runs = _written(
        tmp_path,
        cut=PERF[:9000],
        newer=PERF.replace("winml/perf/1", "winml/perf/7"),
        failed=json.dumps({"schema": "winml/perf/1", "ok": False, "error": error}),
    )
    assert {name: (run.kind, run.state, run.reason) for name, run in runs.items()} == {
        "cut.json": ("perf", "cannot be read", "it is cut off, or being written"),
        "newer.json": ("perf", "cannot be read", "it has the schema `winml/perf/7`, this version reads `winml/perf/1`"),
        "failed.json": ("perf", "failed", "no kernel for `Foo`"),
    }


def test_what_is_no_run_of_ours_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "notes.json").write_text("{}", encoding="utf-8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "journal.jsonl").write_text('{"level": "info"}\n', encoding="utf-8")
    (tmp_path / "other" / "autoconfig.json").write_text('{"schema": "winml/kb/1"}', encoding="utf-8")
    runs = _written(
        tmp_path,
        empty="",
        text="hello",
        array="[1]",
        number="1e999999",
        deep='{"a":' + "[" * 100_000,
        binary=bytes(range(256)),
        package='{"name": "x", "version": "1"}',
        config='{"schema": "winml/build-config/1", "model": "m"}',
        kb='{"schema": "winml/kb/1", "ok": true, "action": "list"}',
        odd='{"schema": ["winml/perf/1"]}',
        sixteen='{"schema": "winml/perf/1", "ok": true}'.encode("utf-16"),
    )
    assert runs == {}


def test_a_run_whose_values_have_other_types_is_listed_without_them(tmp_path: Path) -> None:
    odd = {"schema": "winml/perf/1", "ok": 1, "model": {"a": [1]}, "target": 7, "targets": "x", "cells": [1], "base": 0}
    run = _written(tmp_path, odd=json.dumps(odd))["odd.json"]
    assert (run.models, run.targets, run.state) == ((), (), "finished")


def test_a_journal_that_is_damaged_is_listed_with_the_reason(tmp_path: Path) -> None:
    lines = (BEFORE / "matrix" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_bytes(lines[0] + b"garbage\n" + lines[1])
    (run,) = _runs(tmp_path).values()
    assert (run.kind, run.state) == ("matrix", "cannot be read")
    assert "damaged in line 2" in (run.reason or "")


@pytest.mark.parametrize("length", [0, 5, 100, 600])
def test_a_journal_whose_first_line_is_being_written_is_no_error(length: int, tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes((BEFORE / "search" / "journal.jsonl").read_bytes()[:length])
    assert all(run.state == "not finished" for run in _runs(tmp_path).values())


# How little is read


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of every read from a file that is recognised."""
    counted: list[int] = []

    real = indexes.read_ends

    def read(path: str | Path, first: int, last: int = 0) -> tuple[bytes, bytes]:
        head, end = real(path, first, last)
        counted.append(len(head) + len(end))
        return head, end

    monkeypatch.setattr(indexes, "read_ends", read)
    return counted


def test_samples_are_not_read(tmp_path: Path, reads: list[int]) -> None:
    content = json.loads(PERF)
    content["measurement"]["rounds"][0]["wall_ns"] *= 200_000
    runs = _written(tmp_path, large=json.dumps(content))
    assert runs["large.json"].bytes > 2_000_000
    assert sum(reads) <= LONG + 5000


def test_only_what_changed_is_read_again(tmp_path: Path, reads: list[int]) -> None:
    for number in range(5):
        (tmp_path / f"{number}.json").write_text(PERF, encoding="utf-8")
    index = Index(tmp_path, pause_s=0)
    assert len(index.find_runs().runs) == 5
    first = len(reads)
    index.find_runs()
    assert len(reads) == first
    (tmp_path / "3.json").write_text(PERF.replace('"tiny.onnx"', '"other.onnx"', 1), encoding="utf-8")
    (tmp_path / "4.json").unlink()
    found = {run.name: run.models for run in index.find_runs().runs}
    assert found.pop("3.json") == ("other.onnx",)
    assert found == dict.fromkeys(("0.json", "1.json", "2.json"), ("tiny.onnx",))
    assert len(reads) == first + first // 5


def test_a_walk_is_not_repeated_at_once(tmp_path: Path) -> None:
    index = Index(tmp_path, pause_s=60)
    assert index.find_runs().runs == ()
    (tmp_path / "p.json").write_text(PERF, encoding="utf-8")
    assert index.find_runs().runs == ()


# Where it does not look


def test_hidden_folders_packages_and_caches_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (".venv", "node_modules", "__pycache__", "deep/site-packages", "stages", "seen"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "p.json").write_text(PERF, encoding="utf-8")
    (tmp_path / ".hidden.json").write_text(PERF, encoding="utf-8")
    monkeypatch.setenv("WINML_CACHE", str(tmp_path / "stages"))
    assert list(_runs(tmp_path)) == ["seen/p.json"]


def test_too_much_is_not_looked_at_and_that_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "MOST_ENTRIES", 5)
    (tmp_path / "near.json").write_text(PERF, encoding="utf-8")
    for name in ("a", "b", "c"):
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / name / "below" / "p.json").write_text(PERF, encoding="utf-8")
    found = Index(tmp_path).find_runs()
    assert found.is_partial
    assert [run.name for run in found.runs] == ["near.json"]


def test_what_cannot_be_opened_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = indexes.list_folder

    def refuse(folder: str | Path) -> Any:
        if str(folder).rstrip("/\\").endswith("closed"):
            raise PermissionError(13, "no", str(folder))
        return real(folder)

    monkeypatch.setattr(indexes, "list_folder", refuse)
    (tmp_path / "closed").mkdir()
    (tmp_path / "p.json").write_text(PERF, encoding="utf-8")
    found = Index(tmp_path).find_runs()
    assert (len(found.runs), found.unreadable) == (1, 1)


@pytest.mark.symlink
def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(BEFORE / "search", outside / "search")
    (outside / "p.json").write_text(PERF, encoding="utf-8")
    root = tmp_path / "root"
    root.mkdir()
    (root / "p.json").symlink_to(outside / "p.json")
    (root / "folder").symlink_to(outside, target_is_directory=True)
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "half").mkdir()
    (root / "half" / "journal.jsonl").symlink_to(outside / "search" / "journal.jsonl")
    assert _runs(root) == {}


@pytest.mark.symlink
def test_a_link_in_the_place_of_a_file_that_a_page_is_read_from_is_found(tmp_path: Path) -> None:
    shutil.copytree(BEFORE / "int8", tmp_path / "root" / "int8")
    run = _runs(tmp_path / "root")["int8"]
    assert find_link(run) is None
    (run.path / "journal.jsonl").symlink_to(BEFORE / "search" / "journal.jsonl")
    assert find_link(run) == "journal.jsonl"
    shutil.copytree(BEFORE / "own", tmp_path / "root" / "own")
    knowledge = _runs(tmp_path / "root")["own"]
    assert find_link(knowledge) is None
    (knowledge.path / "findings" / "x.json").symlink_to(tmp_path)
    assert find_link(knowledge) == "x.json"
    shutil.copytree(BEFORE / "contribution", tmp_path / "root" / "contribution")
    contribution = _runs(tmp_path / "root")["contribution"]
    assert find_link(contribution) is None
    evidence = contribution.path / "evidence"
    (evidence / "parity.json").unlink()
    (evidence / "parity.json").symlink_to(BEFORE / "contribution" / "evidence" / "parity.json")
    assert find_link(contribution) == "parity.json"
    shutil.rmtree(evidence)
    evidence.symlink_to(BEFORE / "contribution" / "evidence", target_is_directory=True)
    assert find_link(contribution) == "evidence"


@pytest.mark.symlink
def test_a_path_through_a_link_is_not_opened(tmp_path: Path) -> None:
    root = (tmp_path / "root").resolve()
    (root / "real").mkdir(parents=True)
    (root / "real" / "a.txt").write_text("a", encoding="utf-8")
    (tmp_path / "b.txt").write_text("b", encoding="utf-8")
    (root / "folder").symlink_to(tmp_path, target_is_directory=True)
    (root / "within").symlink_to(root / "real", target_is_directory=True)
    (root / "file").symlink_to(tmp_path / "b.txt")
    with open_inside(root, root / "real" / "a.txt") as stream:
        assert stream.read() == b"a"
    for path in (root / "folder" / "b.txt", root / "within" / "a.txt", root / "file", root / ".." / "b.txt"):
        with pytest.raises(indexes.ModelkitError, match="is a link"):
            open_inside(root, path)
    assert [name for name, _, _ in list_below(root)] == ["real/a.txt"]
    with pytest.raises(indexes.ModelkitError, match="no longer there"):
        check_inside(root, root / "missing")


@pytest.mark.windows
def test_a_junction_is_not_followed(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "p.json").write_text(PERF, encoding="utf-8")
    (tmp_path / "root").mkdir()
    made = subprocess.run(
        ["cmd", "/c", "mklink", "/J", str(tmp_path / "root" / "j"), str(tmp_path / "outside")],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode != 0 or not os.path.lexists(tmp_path / "root" / "j"):
        pytest.skip("junctions cannot be made here")
    assert _runs(tmp_path / "root") == {}


@pytest.mark.posix("pipes have no names in a folder")
def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.json")
    os.mkfifo(tmp_path / "journal.jsonl")
    assert _runs(tmp_path) == {}


# Names

HOSTILE = "<img src=x onerror=alert(1)>\"'&\u202egnp"


@pytest.mark.posix("Windows has none of these names")
def test_names_of_any_kind_have_an_id_of_their_own(tmp_path: Path) -> None:
    names = [HOSTILE, "a\nb", "\x1b[31m", "C:\\x", "%2e%2e%2f", " ", "~"]
    for name in names:
        (tmp_path / f"{name}.json").write_text(PERF, encoding="utf-8")
    if sys.platform == "linux":
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.json")).write_text(PERF, encoding="utf-8")
    runs = _runs(tmp_path)
    assert len(runs) == len(names) + (sys.platform == "linux")
    assert len({run.id for run in runs.values()}) == len(runs)


def test_a_run_is_found_by_its_id(tmp_path: Path) -> None:
    index = Index(tmp_path, pause_s=0)
    (tmp_path / "p.json").write_text(PERF, encoding="utf-8")
    (run,) = index.find_runs().runs
    assert index.find(run.id) == run
    assert index.find("0" * 20) is None
