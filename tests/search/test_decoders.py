"""Searches of models that generate text: real builds and rounds; no time is asserted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.decoder_zoo import VOCABULARY, decoder_folder
from tests.model_zoo import relu, saved
from tests.pictures import check_page

import task_cases
from winml.modelkit.core.build_folder import CONFIG
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.events import ignore
from winml.modelkit.core.generation import GENAI_CONFIG, read_decoder_folder
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.measurement import CompareProtocol, SessionSection
from winml.modelkit.core.objective import Objective
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read, to_json
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.render.autoconfig import autoconfig_text
from winml.modelkit.render.pages.autoconfig import autoconfig_page
from winml.modelkit.search.autoconfig import autoconfig
from winml.modelkit.search.decoders import describe_search, find_decoder_folder, make_gate_data
from winml.modelkit.search.knob_table import make_decoder_space
from winml.modelkit.search.prepare import AutoconfigRequest, _choose_of_text, prepare
from winml.modelkit.search.result import SearchResult
from winml.modelkit.search.strategy import SearchLimits
from winml.modelkit.search.trial import Series, Yardstick
from winml.modelkit.session.generation import runtimes

CPU = Target("cpu", "cpu")
QUICK = CompareProtocol(
    "cpu", warmup=1, min_pairs=2, min_round_s=0.01, few_pairs=2, first_look=2, first_look_alone=2, max_rounds=2
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = decoder_folder(tmp_path_factory.mktemp("decoder") / "tiny")
    (made / "tokenizer.json").write_text("{}", encoding="utf-8")
    return made


def _space(path: Path, **knobs: list[str]) -> str:
    value = {"schema": "winml/space/1", "knobs": {name.replace("__", "."): levels for name, levels in knobs.items()}}
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


def _search(folder: Path, place: Path, objective: Objective | None, **given: Any) -> SearchResult:
    request = AutoconfigRequest(
        str(folder), str(place / "search"), ("cpu",), objective=objective, threads=1, calibrate=False,
        raise_priority=False, limits=SearchLimits(budget_s=600.0), min_agreement=0.5, **given,
    )  # fmt: skip
    return autoconfig(request, ignore)


@pytest.mark.parametrize("objective", [None, pytest.param("memory", marks=pytest.mark.slow)])
def test_configs_of_a_decoder_are_measured_as_folders_that_generate_text(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objective: Objective | None
) -> None:
    monkeypatch.setitem(PROTOCOLS, "cpu", QUICK)
    space = _space(tmp_path / "space.json", quantize__scheme=["int4"])
    result = _search(folder, tmp_path, objective, space=space)
    assert result.objective == (objective or "tokens-per-second")
    assert [trial.choice for trial in result.trials] == [{}, {"quantize.scheme": "int4"}]
    assert {trial.step for trial in result.trials} == {None}
    tried = result.trials[1]
    assert tried.verdict is not None
    assert tried.verdict.metric == "memory" if objective == "memory" else tried.verdict.metric in ("cpu", "wall")
    assert tried.accuracy is not None
    assert tried.accuracy.agreement is not None
    assert 0.5 < tried.accuracy.agreement < 1.0
    [kept] = [path for path in (tmp_path / "search" / "measurements").iterdir() if "confirmation" not in path.name]
    for arm in read_object(kept)["arms"]:
        assert arm["generation"]["metric"] == result.objective
        assert arm["generation"]["prompt_tokens"] == 32
    champion = tmp_path / "search" / "champion"
    assert read_decoder_folder(champion).context_length == read_decoder_folder(folder).context_length
    assert (champion / "tokenizer.json").is_file()
    assert read(SearchResult, to_json(result)) == result
    assert f"searched for {result.objective}" in autoconfig_text(result)
    check_page(autoconfig_page(result, {}))
    if objective is None:
        assert any("the objective is tokens-per-second" in note for note in result.notes)


@pytest.mark.slow
def test_a_search_of_a_decoder_is_resumed_only_with_the_same_objective(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROTOCOLS, "cpu", QUICK)
    space = _space(tmp_path / "space.json", quantize__scheme=["fp16"])
    first = _search(folder, tmp_path, "size", space=space)
    again = _search(folder, tmp_path, "size", space=space, resume=True)
    assert [trial.id for trial in again.trials] == [trial.id for trial in first.trials]
    with pytest.raises(RequestError, match="objective, text differ"):
        _search(folder, tmp_path, "first-token", space=space, resume=True)


def test_the_program_that_runs_a_champion_is_in_its_build(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_genai")
    space = make_decoder_space({"session": {}}, CPU, None, fused=True)
    assert space.config((("session.runtime", "onnxruntime"),))["session"] == {"runtime": "onnxruntime"}
    section = SessionSection(runtime="onnxruntime")
    assert describe_search(folder, CPU, section, "memory", None).text.runtime == "onnxruntime"
    assert describe_search(folder, CPU, SessionSection(), "memory", 2).text.batch == 2
    assert "runtime" not in to_json(SessionSection())
    assert runtimes.choose_runtime(CPU, "genai", saved="onnxruntime").name == "genai"


def test_a_program_that_is_absent_is_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "find_genai", lambda: None)
    assert "session.runtime" not in {knob.name for knob in make_decoder_space({}, CPU, None, fused=True).knobs}
    assert runtimes.choose_runtime(CPU, saved="genai").name == "onnxruntime"


def test_blocks_are_chosen_only_where_weights_have_them() -> None:
    space = make_decoder_space({"quantize": None}, CPU, None, fused=True)
    assert space.canonical((("quantize.scheme", "fp16"), ("quantize.block_size", "64"))) == (
        ("quantize.scheme", "fp16"),
    )
    hqq = (("quantize.scheme", "int4"), ("quantize.block_method", "hqq"), ("quantize.weights", "asymmetric"))
    assert space.canonical(hqq) == hqq[:2]  # its weights are asymmetric anyway
    assert space.config(hqq)["quantize"]["symmetric_weights"] is False
    assert not any(knob.name.startswith("optimize.") for knob in space.knobs)
    traced = make_decoder_space({"quantize": None}, CPU, None, fused=False)
    assert "optimize.passes" in {knob.name for knob in traced.knobs}
    assert all(not level.needs for knob in traced.knobs for level in knob.levels)


def test_outputs_are_compared_after_a_cache_that_the_mask_covers(folder: Path) -> None:
    data = make_gate_data(read_decoder_folder(folder))
    assert data.dims == {"batch": 1, "length": 8, "total": 16, "past": 8}
    assert data.ranges["input_ids"] == (0.0, VOCABULARY - 1)
    assert data.ranges["attention_mask"] == (1.0, 1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"objective": "latency"}, "generates text, which has no one latency"),
        ({"preset": "cpu"}, "`--preset` cannot be used in a search of a model that generates text"),
        ({"inputs": InputSettings(dims={"batch": 2})}, "`--dim` and `--shape` cannot be used"),
    ],
)
def test_what_a_decoder_has_not_is_refused(folder: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        prepare(AutoconfigRequest(str(folder), "out", ("cpu",), **given), ignore)


def test_objectives_of_text_are_refused_for_other_models(tmp_path: Path) -> None:
    other = str(saved(relu(), tmp_path / "relu.onnx"))
    assert find_decoder_folder(other, CPU, ignore) is None
    with pytest.raises(RequestError, match="is for a model that generates text"):
        prepare(AutoconfigRequest(other, "out", ("cpu",), objective="tokens-per-second"), ignore)


def test_a_simulated_target_is_not_timed(folder: Path) -> None:
    request = AutoconfigRequest(str(folder), "out")
    with pytest.raises(UnavailableError, match="is simulated on this machine: its tokens-per-second"):
        _choose_of_text(request, replace(Target("qnn", "npu"), simulated=True))


def test_memory_is_judged_without_another_clock() -> None:
    yardstick = Yardstick(CompareProtocol("cpu"))
    verdict = yardstick.verdict(Series("memory", {"memory": (0.30, 0.31, 0.30, 0.305)}))
    assert (verdict.verdict, verdict.metric) == ("KEEP", "memory")
    assert verdict.reason.endswith("less memory")


def test_a_decoder_folder_is_built_into_one(folder: Path, tmp_path: Path) -> None:
    from winml.modelkit.building.build import BuildRequest, build
    from winml.modelkit.building.config import ConfigRequest

    config = ConfigRequest(str(folder), target="cpu", precision="int4", optimize=False)
    built = Path(build(BuildRequest(config, output=str(tmp_path / "out"), analyze=False, prove=False), ignore).folder)
    assert {CONFIG, GENAI_CONFIG, "tokenizer.json", "model.onnx"} <= {path.name for path in built.iterdir()}
    assert read_decoder_folder(built).layers == 2


def test_texts_are_the_gate_where_they_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROTOCOLS, "cpu", QUICK)
    monkeypatch.setattr(runtimes, "find_genai", lambda: None)  # which does not know this kind of model
    case = task_cases.CASES["perplexity"](tmp_path)
    given = {"data": DataSection(str(case.data)), "task": "perplexity", "judge": "value"}
    with pytest.raises(RequestError, match="a gate by texts needs a limit"):
        prepare(AutoconfigRequest(str(case.model), "out", ("cpu",), **given), ignore)
    space = _space(tmp_path / "space.json", quantize__scheme=["fp16"])
    result = _search(Path(case.model), tmp_path, "size", space=space, max_drop=5.0, **given)
    base, tried = (trial.accuracy for trial in result.trials)
    assert base is not None
    assert tried is not None
    assert (base.metric, base.less_is_better) == ("perplexity", True)
    assert base.value == pytest.approx(case.metrics["perplexity"], rel=1e-5)
    assert tried.value == pytest.approx(base.value, rel=0.05)
    assert result.gate.words.startswith("the metric may drop by at most 5 and outputs must agree")
