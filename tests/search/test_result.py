"""What searches come to, as the table and the state that are written after every trial."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from search_world import World, search
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.values import read, to_json
from winml.modelkit.render.autoconfig import autoconfig_text
from winml.modelkit.render.autoconfig_sweep import sweep_text
from winml.modelkit.render.pages.autoconfig import autoconfig_page
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.markdown import page_markdown
from winml.modelkit.search.insight import make_insight
from winml.modelkit.search.records import Objective
from winml.modelkit.search.result import (
    SearchResult,
    SearchSession,
    SweepResult,
    make_session,
    make_table,
    raise_if_all_failed,
    suggest_next,
)
from winml.modelkit.search.run_folder import SearchFolder
from winml.modelkit.search.strategy import SearchLimits
from winml.modelkit.search.trial import Note

WORLD = World(
    {"scheme": 3},
    {("scheme", "l1"): 0.7, ("scheme", "l2"): -0.9},
    inaccurate=frozenset({("scheme", "l3")}),
    spread=0.001,
)
BEFORE = Path(__file__).parents[1] / "goldens" / "before"


def result_of_before() -> SearchResult:
    return read(SearchResult, read_json(BEFORE / "search" / "autoconfig.json"))


def test_the_table_has_a_row_per_trial() -> None:
    study, _ = search(WORLD)
    rows = {row.config: row for row in make_table(study)}
    assert {name: row.verdict for name, row in rows.items()} == {
        "baseline": "BASELINE",
        "scheme=l1": "KEEP",
        "scheme=l2": "DISCARD",
        "scheme=l3": "FAILED",
    }
    assert {name: row.state for name, row in rows.items()} == {
        "baseline": "baseline",
        "scheme=l1": "confirmed",
        "scheme=l2": "screened out",
        "scheme=l3": "inaccurate",
    }
    kept = rows["scheme=l1"]
    assert kept.gain_pct is not None
    assert kept.low_pct is not None
    assert kept.high_pct is not None
    assert kept.low_pct <= kept.gain_pct <= kept.high_pct
    assert rows["scheme=l3"].reason == "accuracy fell to 10 %"


def test_the_state_names_the_leader(tmp_path: Path) -> None:
    study, _ = search(WORLD)
    folder = SearchFolder(tmp_path / "out", resume=False)
    folder.path.mkdir()
    folder.derive(make_table(study), make_session(study, "size"))
    session = read(SearchSession, read_json(folder.path / "session.json"))
    assert (session.best_label, session.baseline_p50, session.best_p50) == ("scheme=l1", None, None)
    assert session.best_gain_pct == pytest.approx(50.3, abs=0.5)
    lines = (folder.path / "results.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0].replace("\t", " ") == (
        "id config target outcome verdict gain_pct low_pct high_pct rounds accuracy bytes seconds reason"
        " agreement state"
    )
    assert [line.split("\t")[0] for line in lines[1:]] == list(session.completed)


@pytest.mark.parametrize("name", ["search", "sweep/tiny", "sweep/small"])
def test_results_of_the_version_before_are_read_whole_and_written_the_same(name: str) -> None:
    value = read_json(BEFORE / name / "autoconfig.json")
    assert to_json(read(SearchResult, value)) == value


def test_a_search_that_failed_everywhere_is_told_with_its_result() -> None:
    value = read_json(BEFORE / "search" / "autoconfig.json")
    raise_if_all_failed(read(SearchResult, value))
    for trial in value["trials"][1:]:
        trial |= {"outcome": "failed", "reason": "it crashed", "step": "probe"}
    failed = read(SearchResult, value)
    with pytest.raises(
        RunFailedError, match=r"every config failed: h1 \(quantize.scheme=int8\): it crashed; h2"
    ) as caught:
        raise_if_all_failed(failed)
    assert caught.value.result is failed


NO_GAIN = World({"scheme": 1}, {("scheme", "l1"): -0.2}, spread=0.001)


def next_of(
    world: World, objective: Objective = "latency", *, notes: tuple[Note, ...] = (), limits: SearchLimits | None = None
) -> str:
    study, _ = search(world, limits=limits)
    insight = make_insight(world.space, notes, (), lambda advice, config: False)
    return suggest_next(
        study, insight, objective, model="m.onnx", champion="out/champion", where="--target cpu", again="AGAIN --resume"
    )


def test_a_champion_is_run_next() -> None:
    assert next_of(WORLD) == "winml perf -m out/champion --target cpu"


@pytest.mark.parametrize(
    ("objective", "command"),
    [
        ("latency", "winml perf -m m.onnx --target cpu --op-tracing basic"),
        ("size", "winml inspect -m m.onnx"),
        ("placement", "winml analyze -m m.onnx --target cpu"),
    ],
)
def test_a_search_that_gained_nothing_says_what_to_look_at(objective: Objective, command: str) -> None:
    assert next_of(NO_GAIN, objective) == command


def test_a_search_that_lacked_data_or_time_says_so() -> None:
    skipped = Note(kind="skip", knob="quantize.scheme", level="int8", source="data", reason="no calibration data")
    command = "winml autoconfig -m m.onnx --target cpu --objective size --calibration FILE -o DIR"
    assert next_of(NO_GAIN, "size", notes=(skipped,)) == command
    assert next_of(WORLD, notes=(skipped,)) == "winml perf -m out/champion --target cpu", "it has a gain to look at"
    many = World({"a": 3, "b": 3, "c": 3}, {}, spread=0.001)
    assert next_of(many, limits=SearchLimits(budget_s=100.0)) == "AGAIN --resume --budget 4m"


def test_the_texts_name_the_champion_and_every_trial() -> None:
    result = result_of_before()
    text = autoconfig_text(result)
    champion = "champion h3  quantize.scheme=fp16\n  1.37x smaller\n  agreement 1.0000 · 1.5 KiB instead of 2.1 KiB\n"
    assert champion in text
    assert "4 of 4 configs tried; everything worth a trial was tried" in text
    page = autoconfig_page(result)
    for written, gate in (
        (page_markdown(page), "agreement gate: no labelled data"),
        (page_html(page), "<dt>agreement gate</dt><dd>no labelled data"),
    ):
        assert all(trial.label in written for trial in result.trials)
        assert gate in written
        assert "accuracy" not in written
    summary = read(SweepResult, read_json(BEFORE / "sweep" / "summary.json"))
    assert all(row.champion is not None and row.champion.trial.label in sweep_text(summary) for row in summary.models)
    assert json.loads(json.dumps(to_json(summary))) == read_json(BEFORE / "sweep" / "summary.json")
