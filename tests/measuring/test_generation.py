"""`winml perf` of a decoder folder, in real processes; no time is asserted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from tests import generation_zoo
from tests.decoder_zoo import decoder_folder
from tests.pictures import check_figures, check_page, marks

from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.events import Event
from winml.modelkit.core.statistics import median
from winml.modelkit.core.values import read, to_json
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.measuring.generation import GenerationPerf, fit_lengths
from winml.modelkit.measuring.perf import GenerationSettings, PerfRequest
from winml.modelkit.measuring.perf_parts import PerfParts, perf_model
from winml.modelkit.measuring.sessions import AskedProtocol, SessionStarted
from winml.modelkit.render.figures.positions import position_figure
from winml.modelkit.render.generation import generation_text
from winml.modelkit.render.pages.generation import generation_page
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.reporting.runs import find_kind, read_run

OURS = GenerationSettings(prompt_tokens=(4, 9), new_tokens=13, runtime="onnxruntime")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decoder_folder(tmp_path_factory.mktemp("decoder"))


def _perf(folder: Path, on_event: Any = lambda event: None, **changes: Any) -> GenerationPerf:
    protocol = AskedProtocol(iterations=2, sessions=1)
    request = replace(PerfRequest(str(folder), "cpu", protocol=protocol, generation=OURS), **changes)
    result = perf_model(request, on_event)
    assert isinstance(result, GenerationPerf)
    return result


@pytest.fixture(scope="module")
def three_sessions(folder: Path) -> GenerationPerf:
    return _perf(folder, protocol=AskedProtocol(iterations=2, sessions=3))


def test_every_session_is_a_process_with_all_of_its_samples(three_sessions: GenerationPerf) -> None:
    result = three_sessions
    assert len({session.process for session in result.sessions}) == 3
    for session in result.sessions:
        assert [one.prompt_tokens for one in session.prompts] == [4, 9]
        assert [len(one.texts) for one in session.prompts] == [2, 2]
        assert [len(one.warmup) for one in session.prompts] == [1, 1]
        assert {len(text.step_ns) for one in session.prompts for text in one.texts} == {12}
    assert (result.runtime.name, result.runtime.reason) == ("onnxruntime", "it was asked for")
    assert result.runtime.version.startswith("onnxruntime 1.")
    assert result.placement is not None


def test_what_is_reported_follows_from_the_samples(three_sessions: GenerationPerf) -> None:
    one, times = three_sessions.prompts[0], [session.prompts[0] for session in three_sessions.sessions]
    firsts = [text.first_token_ns for taken in times for text in taken.texts]
    assert one.first_token_ms.p50 == pytest.approx(median(firsts) / 1e6)
    rates = [24 / (sum(ns for text in taken.texts for ns in text.step_ns) / 1e9) for taken in times]
    assert one.tokens_per_s is not None
    assert one.tokens_per_s.median == pytest.approx(median(rates))
    ratios = []
    for taken in times:
        ends = [[ns for text in taken.texts for ns in text.step_ns[part]] for part in (slice(-3, None), slice(3))]
        ratios.append(median(ends[0]) / median(ends[1]))
    assert one.last_to_first_quarter is not None
    assert one.last_to_first_quarter.median == pytest.approx(median(ratios))
    for spread in (one.tokens_per_s, one.last_to_first_quarter, three_sessions.open_ms):
        assert spread.interval is not None
        assert spread.median is not None
        assert spread.interval.low < spread.interval.high


def test_memory_says_what_the_model_takes_of_the_process(three_sessions: GenerationPerf) -> None:
    memory = three_sessions.memory
    assert memory is not None
    assert memory.peak_bytes.median is not None
    assert memory.model_bytes.median is not None
    assert 0 < memory.model_bytes.median < memory.peak_bytes.median


def test_a_batch_counts_the_tokens_of_all_sequences(folder: Path) -> None:
    result = _perf(folder, inputs=InputSettings(batch_size=3))
    steps = [ns for text in result.sessions[0].prompts[0].texts for ns in text.step_ns]
    spread = result.prompts[0].tokens_per_s
    assert spread is not None
    assert spread.median == pytest.approx(3 * len(steps) / (sum(steps) / 1e9))
    assert spread.interval_reason == "an interval needs at least 3 sessions but there are 1"


def test_the_result_is_read_again_and_has_a_page(three_sessions: GenerationPerf, tmp_path: Path) -> None:
    path = tmp_path / "perf.json"
    path.write_text(json.dumps(to_json(three_sessions)), encoding="utf-8")
    assert find_kind(path) == "perf-generation"
    again = read_run(path).value
    assert again == read(GenerationPerf, to_json(three_sessions)) == three_sessions
    page = generation_page(again)
    check_page(page)
    assert set(check_figures(page)) >= {"first-token", "steps"}
    text = generation_text(again)
    assert "3 sessions x 2 texts, 13 new tokens" in text
    assert "runtime  onnxruntime, because it was asked for" in text


def test_prompt_and_step_are_traced_apart(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "trace"
    result = _perf(folder, op_tracing="basic", keep_trace=kept, generation=replace(OURS, runtime=None))
    assert result.op_traces is not None
    assert list(result.op_traces) == ["prompt", "step"]
    assert "winml's own loop" in result.runtime.reason
    for phase, trace in result.op_traces.items():
        assert trace.usable
        assert {len(operator.samples) for operator in trace.operators} == {3}
        assert any(operator.op_type == "GroupQueryAttention" for operator in trace.operators)
        assert trace.artifacts
        assert all(Path(file).is_relative_to(kept / phase) for file in trace.artifacts.values())
    assert "prompt:\noperators" in generation_text(result)
    assert {name for name in check_figures(generation_page(result)) if name.startswith(("prompt-", "step-"))}


def test_events_name_every_process(folder: Path) -> None:
    seen: list[Event] = []
    result = _perf(folder, seen.append, generation=replace(OURS, prompt_tokens=(4,), new_tokens=1))
    assert [event.pid for event in seen if isinstance(event, SessionStarted)] == [result.sessions[0].process]
    one = result.prompts[0]
    assert (one.step_ms, one.tokens_per_s, one.last_to_first_quarter) == (None, None, None)
    check_page(generation_page(result))


def test_genai_runs_where_it_is_installed_and_says_why(folder: Path) -> None:
    pytest.importorskip("onnxruntime_genai")
    result = _perf(folder, generation=replace(OURS, runtime=None))
    assert (result.runtime.name, result.runtime.reason) == ("genai", "onnxruntime-genai is installed")
    assert result.runtime.version.startswith("onnxruntime-genai ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"inputs": InputSettings(npz=Path("x.npz"))}, "`--input-data`"),
        ({"inputs": InputSettings(dims={"batch": 2})}, "`--dim` and `--shape`"),
        ({"inputs": InputSettings(int_ranges={"": (0, 3)})}, "`--int-range`"),
        ({"protocol": AskedProtocol(duration_s=1.0)}, "`--duration`"),
        ({"baseline": Path("t.json")}, "`--baseline`"),
        ({"op_tracing": "basic", "generation": replace(OURS, runtime="genai")}, "traced in winml's own loop"),
        ({"generation": replace(OURS, prompt_tokens=(120,))}, "does not fit the model's context of 128"),
    ],
)
def test_options_that_say_nothing_about_a_text_are_refused(folder: Path, changes: Any, said: str) -> None:
    with pytest.raises(RequestError) as raised:
        _perf(folder, **changes)
    assert said in raised.value.message


def test_options_of_a_decoder_are_refused_for_other_models(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    with pytest.raises(RequestError, match="no folder that generates text"):
        perf_model(PerfRequest(str(tmp_path / "m.onnx"), "cpu", generation=OURS), lambda event: None)


def test_a_config_without_a_vocabulary_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="`vocab_size`"):
        _perf(decoder_folder(tmp_path, vocab_size=None))


@pytest.mark.parametrize(
    ("lengths", "new", "context", "expected", "notes"),
    [
        (None, None, 4096, ((32, 256), 64), 0),
        (None, None, 200, ((32, 136), 64), 1),
        (None, None, 64, ((32,), 32), 2),
        (None, 4, 16, ((12,), 4), 1),
        ((256, 8, 8), 16, 512, ((8, 256), 16), 0),
    ],
)
def test_lengths_that_nobody_asked_for_are_cut_to_the_context(
    lengths: tuple[int, ...] | None, new: int | None, context: int, expected: object, notes: int
) -> None:
    found = fit_lengths(lengths, new, context)
    assert found[:2] == expected
    assert len(found[2]) == notes


def test_a_picture_of_steps_is_empty_without_points_and_has_a_mark_for_each_length(
    three_sessions: GenerationPerf,
) -> None:
    from winml.modelkit.render.figures.positions import courses_of

    assert position_figure([], ("x", "y"), "title") == ""
    for width in (320.0, 760.0):
        picture = position_figure(courses_of(three_sessions), ("tokens", "ms"), "title", width)
        assert len(marks(picture)) == 2


def test_a_decoder_in_parts_is_measured_by_the_texts_it_generates(tmp_path: Path) -> None:
    folder = generation_zoo.decoder_parts(tmp_path / "parts", generation_zoo.random_table())
    result = _perf(folder, generation=GenerationSettings(prompt_tokens=(3, 9), new_tokens=12))
    assert [one.prompt_tokens for one in result.prompts] == [3, 9]
    assert {len(text.step_ns) for one in result.sessions[0].prompts for text in one.texts} == {11}
    assert (result.runtime.name, result.runtime.reason) == ("onnxruntime", "parts are run by winml alone")
    assert result.context_length == generation_zoo.CONTEXT
    nodes = [len(onnx.load(folder / part / "model.onnx").graph.node) for part in ("prefill", "decode")]
    assert result.placement is not None
    assert 0 < sum(result.placement.nodes.values()) <= sum(nodes)
    assert "parts are run by winml alone" in generation_text(result)
    with pytest.raises(RequestError, match="not by onnxruntime-genai"):
        _perf(folder, generation=GenerationSettings(runtime="genai"))
    with pytest.raises(RequestError, match="30 tokens with 8 more does not fit the model's context of 32"):
        _perf(folder, generation=GenerationSettings(prompt_tokens=(30,), new_tokens=8))


def test_a_trace_of_a_decoder_in_parts_has_the_prompt_and_the_step(tmp_path: Path) -> None:
    folder = generation_zoo.decoder_parts(tmp_path / "parts", generation_zoo.random_table())
    settings = GenerationSettings(prompt_tokens=(9,), new_tokens=4)
    result = _perf(folder, generation=settings, op_tracing="basic", protocol=AskedProtocol(iterations=1, sessions=1))
    assert result.op_traces is not None
    assert set(result.op_traces) == {"prompt", "step"}
    assert all(trace.usable for trace in result.op_traces.values())


def test_a_pair_is_measured_by_what_it_says(tmp_path: Path) -> None:
    folder = generation_zoo.pair(tmp_path / "pair")
    # It says a word for every one that it reads.
    result = _perf(folder, generation=GenerationSettings(prompt_tokens=(12,), new_tokens=9))
    assert [one.prompt_tokens for one in result.prompts] == [12]
    assert {len(text.step_ns) for one in result.sessions[0].prompts for text in one.texts} == {8}
    assert result.context_length is None
    assert "unknown" in page_html(generation_page(result))
    with pytest.raises(RequestError, match="a trace of an encoder with a decoder needs a single part"):
        _perf(folder, generation=GenerationSettings(new_tokens=2), op_tracing="basic")


def test_parts_without_a_word_about_texts_are_measured_one_by_one(tmp_path: Path) -> None:
    folder = generation_zoo.decoder_parts(tmp_path / "parts", generation_zoo.random_table())
    protocol = AskedProtocol(iterations=2, warmup=0, sessions=1)
    result = perf_model(PerfRequest(str(folder), "cpu", protocol=protocol), lambda event: None)
    assert isinstance(result, PerfParts)
    assert [one.part for one in result.parts] == ["prefill", "decode"]
