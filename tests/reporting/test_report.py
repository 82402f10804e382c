"""`winml report` as a command and as a function: what is written where, and what is refused."""

from __future__ import annotations

import hashlib
import re
import shutil
import xml.etree.ElementTree as ET
from base64 import b64encode
from pathlib import Path

import pytest

import winml.modelkit as wk
from winml.modelkit.cli.main import run as winml
from winml.modelkit.core.errors import RequestError
from winml.modelkit.reporting.command import ReportRequest, report
from winml.modelkit.reporting.runs import read_run

BEFORE = Path(__file__).parents[1] / "goldens" / "before"
REPORTED = (
    "perf.json", "perf_op_trace.json", "compare.json", "eval.json", "search", "stopped-search", "sweep", "matrix",
    "contribution", "int8",
)  # fmt: skip


@pytest.mark.parametrize("name", REPORTED)
def test_a_page_needs_nothing_else_and_carries_its_policy(name: str) -> None:
    made = report(ReportRequest((str(BEFORE / name),)))
    text = made.text or ""
    assert made.bytes < 300_000
    assert text.startswith("<!doctype html>")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    for element in ("style", "script"):
        content = re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        assert len(content) == 1
        known = b64encode(hashlib.sha256(content[0].encode()).digest()).decode()
        assert f"{element}-src 'sha256-{known}'" in policy[1]
    assert not re.search(r'\s(?:src|style|on[a-z]+)="', text)
    assert all(address.startswith("#") for address in re.findall(r'href="([^"]*)"', text))


@pytest.mark.parametrize("name", REPORTED)
def test_markdown_fits_into_a_comment_and_every_picture_is_an_svg(name: str) -> None:
    text = report(ReportRequest((str(BEFORE / name),), format="markdown")).text or ""
    assert text.startswith("## ")
    assert len(text) < 65_536
    assert "<svg" not in text
    for figure in report(ReportRequest((str(BEFORE / name),))).figures:
        drawn = report(ReportRequest((str(BEFORE / name),), format="svg", figure=figure.name)).text or ""
        assert ET.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
        assert figure.sentence


def test_two_runs_are_put_side_by_side(tmp_path: Path) -> None:
    shutil.copy(BEFORE / "perf.json", tmp_path / "after.json")
    made = report(ReportRequest((str(BEFORE / "perf.json"), str(tmp_path / "after.json"))))
    assert [run.kind for run in made.runs] == ["perf", "perf"]
    names = [figure.name for figure in made.figures]
    assert names[0] == "both"
    assert {"latency", "latency-2"} <= set(names)
    assert "1.00 times that of perf.json" in made.figures[0].sentence
    assert "winml compare" in made.figures[0].sentence


def test_two_traces_side_by_side_say_what_changed() -> None:
    paths = (str(BEFORE / "perf_op_trace.json"), str(BEFORE / "small_op_trace.json"))
    made = report(ReportRequest(paths))
    assert "changes" in {figure.name for figure in made.figures}


def test_runs_of_different_commands_are_refused() -> None:
    with pytest.raises(RequestError, match="is a run of `perf` and .* one of `compare`"):
        report(ReportRequest((str(BEFORE / "perf.json"), str(BEFORE / "compare.json"))))
    with pytest.raises(RequestError, match="one run or two, but 3"):
        report(ReportRequest(("a", "b", "c")))


def test_an_earlier_report_is_replaced_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = str(BEFORE / "perf.json")
    assert winml(["report", given]) == 0
    shown = capsys.readouterr()
    assert "pictures  latency" in shown.out
    assert "wrote report.html" in shown.err
    first = Path("report.html").read_bytes()
    assert winml(["report", given]) == 0
    assert Path("report.html").read_bytes() == first
    Path("report.html").write_text("mine", encoding="utf-8")
    assert winml(["report", given]) == 2
    assert Path("report.html").read_text(encoding="utf-8") == "mine"
    assert winml(["report", given, "--overwrite"]) == 0
    assert Path("report.html").read_bytes() == first


def test_markdown_and_pictures_go_to_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = str(BEFORE / "perf.json")
    assert winml(["report", given, "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("## ")
    assert winml(["report", given, "--svg", "latency"]) == 0
    assert ET.fromstring(capsys.readouterr().out).tag.endswith("svg")
    assert winml(["report", given, "--svg", "latency", "-o", str(tmp_path / "a.svg")]) == 0
    assert (tmp_path / "a.svg").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--svg", "latncy"], "did you mean `latency`?"),
        (["--svg", "latency", "--markdown"], "`--markdown` cannot be combined with `--svg`"),
        (["--markdown", "--open"], "`--markdown` cannot be combined with `--open`"),
        (["--svg", "latency", "--open"], "`--open` opens a file"),
        (["-o", "no/such/folder/x.html"], str(Path("no/such/folder"))),
    ],
)
def test_words_that_make_no_sense_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert winml(["report", str(BEFORE / "perf.json"), *words]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_a_result_of_this_process_is_reported_as_its_file_is() -> None:
    value = read_run(BEFORE / "perf.json").value
    from_value, from_file = wk.report(value), wk.report(BEFORE / "perf.json")
    assert from_value.figures == from_file.figures
    assert from_value.runs[0].answer == from_file.runs[0].answer
    with pytest.raises(RequestError, match="`SysResult` has no report"):
        wk.report(wk.sys())


def test_a_report_says_that_its_run_has_not_ended(capsys: pytest.CaptureFixture[str]) -> None:
    assert winml(["report", str(BEFORE / "stopped-search"), "--markdown"]) == 0
    assert "has not ended; this is what it has so far" in capsys.readouterr().err
