"""`winml compare` of folders that generate text: real rounds in real processes; no time is asserted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import generation_zoo
from tests.decoder_zoo import decoder_folder
from tests.measured import a_round, measurement
from tests.model_zoo import relu, saved
from tests.pictures import check_page

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.measurement import CompareProtocol, GenerationMetric
from winml.modelkit.core.values import read, to_json
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.measuring.compare import compare
from winml.modelkit.measuring.compare_arms import CompareGeneration, CompareRequest
from winml.modelkit.measuring.compare_result import CompareResult
from winml.modelkit.measuring.judge import judge, round_value
from winml.modelkit.measuring.rejudge import rejudge
from winml.modelkit.measuring.summary import arm_memory
from winml.modelkit.render.compare import compare_text
from winml.modelkit.render.pages.compare import compare_page

QUICK = CompareProtocol("cpu", warmup=1, min_pairs=4, min_round_s=0.01, few_pairs=2, max_rounds=2)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    place = tmp_path_factory.mktemp("folders")
    return str(decoder_folder(place / "one")), str(decoder_folder(place / "two", layers=3))


def _compare(*models: str, **text: Any) -> CompareResult:
    generation = CompareGeneration(**{"runtimes": ("onnxruntime",), "prompt_tokens": 5, "new_tokens": 6, **text})
    request = CompareRequest(
        models, ("cpu",), threads=1, calibrate=False, protocol=QUICK, raise_priority=False, generation=generation
    )
    return compare(request, lambda event: None)


@pytest.mark.parametrize("metric", ["first-token", "tokens-per-second"])
def test_two_folders_are_judged_by_a_chosen_time(folders: tuple[str, str], metric: GenerationMetric) -> None:
    result = _compare(*folders, metric=metric)
    [candidate] = result.candidates
    assert candidate.measurement is not None
    for arm in (result.base.arm, candidate.arm):
        assert arm.generation is not None
        assert (arm.generation.metric, arm.generation.prompt_tokens) == (metric, 5)
    assert {len(one.wall_ns) >= 4 for one in candidate.measurement.rounds} == {True}
    assert candidate.verdict.metric in ("cpu", "wall")
    assert candidate.parity is None
    assert any("of 6 tokens as the base does" in note for note in candidate.warnings)
    assert read(CompareResult, to_json(result)) == result
    assert f"{metric}: prompt of 5, 6 new tokens" in compare_text(result)


def test_memory_is_that_of_a_process_with_one_arm(folders: tuple[str, str], tmp_path: Path) -> None:
    result = _compare(*folders, metric="memory")
    [candidate] = result.candidates
    assert candidate.measurement is not None
    assert (candidate.verdict.metric, candidate.times) == ("memory", None)
    rounds = candidate.measurement.rounds
    assert len({one.process for one in rounds}) == len(rounds)
    assert all(one.peak_bytes is not None and one.peak_bytes[0] > 2**20 for one in rounds)
    assert candidate.memory == arm_memory(candidate.measurement)
    text = compare_text(result)
    assert "judged by peak memory of the process" in text
    assert "MiB" in text
    assert "memory of" in check_page(compare_page(result))
    path = tmp_path / "compare.json"
    path.write_text(json.dumps(to_json(result)), encoding="utf-8")
    assert rejudge(path).candidates[0].memory == candidate.memory


def test_one_folder_is_compared_over_two_runtimes(folders: tuple[str, str]) -> None:
    pytest.importorskip("onnxruntime_genai")
    result = _compare(folders[0], runtimes=("onnxruntime", "genai"))
    assert (result.base.label, result.candidates[0].label) == ("onnxruntime", "genai")
    assert result.candidates[0].verdict.verdict != "IDENTICAL"
    assert any("6 of 6 tokens" in note for note in result.warnings)


def test_the_same_folder_by_the_same_program_is_identical(folders: tuple[str, str]) -> None:
    assert _compare(folders[0], folders[0]).candidates[0].verdict.verdict == "IDENTICAL"


@pytest.mark.parametrize("metric", ["first-token", "tokens-per-second"])
def test_pairs_are_judged_by_what_they_say(tmp_path: Path, metric: GenerationMetric) -> None:
    one, other = (str(generation_zoo.pair(tmp_path / name)) for name in ("one", "other"))
    result = _compare(one, other, metric=metric, runtimes=(None,), prompt_tokens=4, new_tokens=3)
    assert result.candidates[0].verdict.verdict == "IDENTICAL"  # the graphs of all parts are the same
    table = generation_zoo.random_table()
    parts = [str(generation_zoo.decoder_parts(tmp_path / f"pieces of {new}", table, new=new)) for new in (4, 2)]
    result = _compare(*parts, metric=metric, runtimes=(None,), prompt_tokens=4, new_tokens=4)
    [candidate] = result.candidates
    assert candidate.measurement is not None
    assert candidate.measurement.rounds
    assert any("is run by onnxruntime: parts are run by winml alone" in note for note in result.warnings)
    with pytest.raises(RequestError, match="has an encoder that reads prompts and `pieces of 4` has none"):
        _compare(one, parts[0], runtimes=(None,))
    with pytest.raises(RequestError, match="is not run by onnxruntime-genai: parts are run by winml alone"):
        _compare(*parts, runtimes=("genai",), prompt_tokens=4, new_tokens=4)


def test_what_cannot_be_compared_is_refused(folders: tuple[str, str], tmp_path: Path) -> None:
    other = str(saved(relu(), tmp_path / "relu.onnx"))
    with pytest.raises(RequestError, match="generates text and"):
        _compare(folders[0], other)
    with pytest.raises(RequestError, match="no folder that generates text"):
        _compare(other, other)
    with pytest.raises(RequestError, match="does not fit the context of 128"):
        _compare(*folders, prompt_tokens=125)
    with pytest.raises(RequestError, match="at least 2 new tokens"):
        _compare(*folders, new_tokens=1)
    with pytest.raises(RequestError, match="several runtimes"):
        _compare(*folders, runtimes=("genai", "onnxruntime"))
    inputs = InputSettings(dims={"batch": 2})
    with pytest.raises(RequestError, match="inputs cannot be given"):
        compare(CompareRequest(folders, ("cpu",), inputs=inputs), lambda event: None)


def test_memory_has_its_own_words_and_no_other_clock() -> None:
    rounds = [a_round((1,), arm=arm, peak_bytes=(peak,)) for arm, peak in ((0, 200), (1, 100))]
    value = round_value(rounds[0], rounds[1], "memory", paired=False)
    assert value == pytest.approx(0.6931, abs=1e-4)
    verdict = judge([value, value * 1.01, value * 0.99, value], protocol=CompareProtocol("cpu"), metric="memory")
    assert verdict is not None
    assert (verdict.verdict, verdict.other_clock.clock) == ("KEEP", None)
    assert verdict.reason.endswith("% less memory")
    with pytest.raises(ValueError, match="cannot be compared"):
        round_value(a_round((1,)), a_round((2,)), "memory", paired=False)
    found = arm_memory(measurement(*rounds))
    assert (found.base_bytes.median, found.candidate_bytes.median) == (200.0, 100.0)
