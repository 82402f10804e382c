"""How results are shown: text, HTML, rows."""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import winml.modelkit as wk
from winml.modelkit.api import display
from winml.modelkit.api.rows import rows_of
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.values import read, to_json
from winml.modelkit.measuring.trace_diff import Change, Totals, TraceDiff, TracedOperator

BEFORE = Path(__file__).parents[1] / "goldens" / "before"
EVIL = "\x1b[31m<script>alert(1)</script>\nerror: forged\u202e"


@pytest.fixture(scope="module")
def measured() -> wk.PerfResult:
    return wk.perf(wk.sample.MODEL, target="cpu", iterations=3, warmup=0, sessions=2)


def _classes(cls: type) -> list[type]:
    return [cls, *(found for child in cls.__subclasses__() for found in _classes(child))]


def test_every_result_has_a_text() -> None:
    for room in pkgutil.walk_packages(wk.__path__, "winml.modelkit."):
        if room.name.endswith(("result", "command", "inspect", "describe", "perf", "perf_parts", "trace")):
            importlib.import_module(room.name)
    named = {cls.__name__ for cls in _classes(CommandResult)} - {"CommandResult", "RunState"}
    assert named == set(display._TEXTS)
    assert {name for name in wk.__all__ if name.endswith("Result")} - {"CommandResult"} <= named


def test_a_result_prints_as_the_text_of_its_command(measured: wk.PerfResult) -> None:
    lines = str(measured).splitlines()
    assert lines[0].startswith("digits.onnx on cpu")
    assert [line for line in lines if line.startswith("warning: ")] == [f"warning: {w}" for w in measured.warnings]


def test_the_repr_is_one_line(measured: wk.PerfResult) -> None:
    assert repr(measured) == f"<PerfResult: {str(measured).splitlines()[0]}>"
    assert len(repr(measured)) < 120


def test_names_cannot_reach_a_terminal_or_a_notebook_as_commands(measured: wk.PerfResult) -> None:
    hostile = replace(measured, model=f"m{EVIL}.onnx", warnings=(EVIL,), provider_options={EVIL: EVIL})
    for shown in (str(hostile), repr(hostile)):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
        assert "\nerror: forged" not in shown
    html = hostile._repr_html_()
    assert "<script" not in html
    assert set(_tags(html)) == {"div", "svg", "path", "text"}


def _tags(html: str) -> list[str]:
    found: list[str] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            found.append(tag)
            assert not {name for name, _ in attrs if name.startswith("on") or name in ("src", "href")}

    parser = Parser()
    parser.feed(html)
    parser.close()
    return found


def test_html_holds_the_whole_text(measured: wk.PerfResult) -> None:
    shown, _, _ = measured._repr_html_().partition("<svg")
    assert re.sub("<[^>]*>", "", shown).replace("&quot;", '"') == str(measured)


def test_a_measurement_shows_every_run(measured: wk.PerfResult) -> None:
    html = measured._repr_html_()
    assert html.count("h0") == 6  # a dot each
    assert "session 1" in html
    assert "session 2" in html


@pytest.fixture(scope="module")
def search() -> wk.SearchResult:
    return read(wk.SearchResult, read_json(BEFORE / "search" / "autoconfig.json"))


def test_a_search_shows_its_picture_in_which_names_are_no_markup(search: wk.SearchResult) -> None:
    assert search.trials
    hostile = replace(search, trials=tuple(replace(trial, label=EVIL) for trial in search.trials))
    html = hostile._repr_html_()
    assert {"svg", "circle", "title"} <= set(_tags(html))
    assert "<script" not in html
    assert "\x1b" not in html


def test_the_trials_of_a_search_are_rows(search: wk.SearchResult) -> None:
    rows = rows_of(search)
    assert rows is not None
    assert [row["trial"] for row in rows] == [trial.id for trial in search.trials]
    assert rows[0]["outcome"] == "baseline"
    assert search.champion is not None
    best = next(row for row in rows if row["trial"] == search.champion.trial.id)
    assert best["gain_pct"] == search.champion.gain_pct


def test_the_operators_of_an_analysis_are_rows() -> None:
    stored = read_json(BEFORE / "contribution" / "artifacts" / "default" / "analyze_result.json")
    rows = rows_of(read(wk.AnalyzeResult, stored))
    assert rows is not None
    assert {row["op"] for row in rows} == {one["op"] for one in stored["targets"][0]["ops"]}


def test_the_runs_of_perf_are_rows(measured: wk.PerfResult) -> None:
    rows = rows_of(measured)
    assert rows is not None
    assert [(row["session"], row["run"]) for row in rows] == [(s, r) for s in (0, 1) for r in (0, 1, 2)]
    assert math.isclose(min(row["wall_ms"] for row in rows), measured.latency_ms.min)


def test_the_changes_of_two_traces_are_rows() -> None:
    def operator(name: str, value: float) -> TracedOperator:
        return TracedOperator(
            op_path=name,
            type="Conv",
            op_type=None,
            ep="CPUExecutionProvider",
            unit="us",
            value=value,
            onnx_nodes=(),
        )

    change = Change(before=(operator("a", 5.0),), after=(operator("b", 9.0),))
    diff = TraceDiff(changes=(change,), groups=(), totals=Totals(before={}, after={}))
    result = wk.TraceDiffResult(before="1", after="2", diff=diff)
    assert rows_of(result) == [
        {
            "before": "a",
            "after": "b",
            "kind": "same",
            "direction": "slower",
            "moved": None,
            "unit": "us",
            "before_value": 5.0,
            "after_value": 9.0,
            "delta": 4.0,
        }
    ]


def test_the_targets_of_a_machine_and_the_operators_of_a_model_are_rows() -> None:
    machine, model = rows_of(wk.sys()), rows_of(wk.inspect(wk.sample.MODEL))
    assert machine is not None
    assert {"ep", "target", "status"} <= set(machine[0])
    assert "cpu" in {row["target"] for row in machine if row["status"] == "ready"}
    assert model is not None
    assert {"op": "Conv", "nodes": 4} in model


def test_without_pandas_a_table_is_an_error_with_a_hint(
    measured: wk.PerfResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UnavailableError, match="needs pandas") as caught:
        measured.to_dataframe()
    assert caught.value.hint == "install it with `pip install pandas`"


def test_a_result_without_rows_says_so() -> None:
    class QuantizeResult(CommandResult):
        pass

    with pytest.raises(RequestError, match="`QuantizeResult` has no rows"):
        QuantizeResult().to_dataframe()


@pytest.mark.pandas
def test_rows_are_a_dataframe(measured: wk.PerfResult) -> None:
    frame = measured.to_dataframe()
    assert list(frame.columns) == ["session", "run", "wall_ms", "cpu_ms"]
    assert len(frame) == 6


def test_a_result_inside_of_another_is_written_once(measured: wk.PerfResult) -> None:
    assert to_json(measured) == measured.to_json()
    assert to_json({"inside": measured})["inside"] == measured.to_json()
