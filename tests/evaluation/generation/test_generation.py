"""Tasks of models that generate text, on small real models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_zoo
import decoder_zoo
import generation_zoo
import task_cases
from data_zoo import IDS
from generation_zoo import Context, judged
from task_zoo import Case
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError, EPUnavailableError, ModelFileError, RequestError
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read, to_json
from winml.modelkit.evaluation.all_tasks import TASKS
from winml.modelkit.evaluation.evaluate import EvalRequest, evaluate
from winml.modelkit.evaluation.generation import scoring
from winml.modelkit.evaluation.generation.run import run
from winml.modelkit.evaluation.metrics import estimate
from winml.modelkit.evaluation.report import RunArguments, RunReport
from winml.modelkit.session.arm import arm_arguments
from winml.modelkit.session.generation.ort_loop import OrtGenerator

GENERATING = [name for name, task in TASKS.items() if task.generates]


def judge_case(case: Case, task: str, **more: Any) -> RunReport:
    # The loop of winml: the decoder of the zoo has no attention that onnxruntime-genai would know.
    return judged(case.model, case.data, task, runtime="onnxruntime", task_options=case.options, **more)


@pytest.mark.parametrize("task", GENERATING)
def test_a_task_gives_the_metrics_its_model_deserves(task: str, tmp_path: Path) -> None:
    case = task_cases.CASES[task](tmp_path)
    report = judge_case(case, task)
    made = {m.name: estimate(m, report.series) for m in report.metrics}
    assert {n: found.value for n, found in made.items()} == pytest.approx(case.metrics, rel=1e-5)
    assert all(found.interval is not None for found in made.values())
    assert report.generation is not None
    assert report.generation.runtime.startswith("onnxruntime ")
    assert report.generation.tokens > len(report.predictions) == report.data.samples
    assert to_json(read(RunReport, json.loads(json.dumps(to_json(report))))) == to_json(report)


def test_a_stop_gives_what_there_is(tmp_path: Path) -> None:
    case = task_cases.CASES["perplexity"](tmp_path)
    context = Context()
    context.stop.set()
    arm = Arm(artifact=str(case.model), target=Target("cpu", "cpu"), session=SessionSection())
    asked = RunArguments(
        arm=arm_arguments(arm, None), data=DataSection(str(case.data)), folder="", task="perplexity", reference=False
    )
    report = run(to_json(asked), context)
    assert report.stopped
    assert not report.predictions


@pytest.mark.parametrize("part", [1, 5, 32, 100])
def test_a_text_in_parts_has_the_logits_of_the_whole(part: int, tmp_path: Path) -> None:
    folder = generation_zoo.decoder(tmp_path, generation_zoo.random_table())
    ids = np.random.default_rng(1).integers(0, len(IDS), 32)
    with OrtGenerator(folder, target=Target("cpu", "cpu")) as generator:
        whole = generator.score(ids[None])[0]
        parts = list(generator.score_parts(ids, part=part))
    assert {len(one) for one in parts[:-1]} <= {part}
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-6)


def test_memory_is_bounded_by_parts_and_the_loss_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = task_cases.CASES["perplexity"](tmp_path)
    whole = judge_case(case, "perplexity")
    monkeypatch.setattr(scoring, "PART_BYTES", 1)  # the least part: 16 tokens
    parts = judge_case(case, "perplexity")
    assert parts.series["loss"] == pytest.approx(whole.series["loss"], rel=1e-6)
    assert parts.series["right"] == whole.series["right"]


@pytest.mark.parametrize(("count", "window", "stride"), [(2, 8, 4), (8, 8, 4), (9, 8, 4), (100, 8, 1), (33, 8, 7)])
def test_windows_predict_every_token_but_the_first_once(count: int, window: int, stride: int) -> None:
    planned = scoring.plan_windows(count, window, stride)
    predicted = [place for one in planned for place in range(one.first, one.end)]
    assert predicted == list(range(1, count))
    assert all(one.end - one.start <= window and one.first > one.start for one in planned)
    # Later windows give every token this much context.
    assert all(one.first - one.start >= window - stride for one in planned[1:])


def test_places_are_spread_over_the_text() -> None:
    assert scoring.spread_places(3, 10).tolist() == [1, 2, 3]
    assert scoring.spread_places(100, 4).tolist() == [1, 26, 51, 76]


def test_choices_are_ranked_by_their_likelihood(tmp_path: Path) -> None:
    table = generation_zoo.chain(who="wrote", wrote="it", did="ada")
    folder = generation_zoo.decoder(tmp_path / "model", table, drift=0.0)
    rows = [
        {"text": "who", "choices": ["did ada", "wrote it"], "label": 1},
        {"text": "who", "choices": ["did ada", "wrote it"], "label": "did ada"},
        {"text": "ada did", "choices": ["ada", "who", "it"], "label": 0},
    ]
    report = judged(folder, data_zoo.jsonl(tmp_path / "data.jsonl", rows), None)
    assert report.task == "multiple-choice"
    assert report.predictions == (1, 1, 0)
    assert report.series["top1"] == (1.0, 0.0, 1.0)
    wrong = data_zoo.jsonl(tmp_path / "wrong.jsonl", [{**rows[0], "label": 2}])
    with pytest.raises(DataError, match="the label of sample 0"):
        judged(folder, wrong, None)


def test_speech_of_a_pair_is_judged_by_its_words(tmp_path: Path) -> None:
    folder = generation_zoo.pair(tmp_path / "model", takes="speech")
    settings = {"sampling_rate": 8000, "do_normalize": False, "feature_extractor_type": "Wav2Vec2FeatureExtractor"}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings), encoding="utf-8")
    loud = np.repeat([IDS[word] / 16 for word in ("[CLS]", "good", "film", "[SEP]")], 4)
    data_zoo.wave(tmp_path / "a.wav", loud, 8000)
    rows = [{"audio": "a.wav", "text": "Good film"}, {"audio": "a.wav", "text": "good dull film"}]
    report = judged(folder, data_zoo.jsonl(tmp_path / "data.jsonl", rows), None)
    assert report.task == "automatic-speech-recognition"
    assert report.predictions == ("good film", "good film")
    assert report.series["errors"] == (0.0, 1.0)


def test_an_answer_ends_at_the_end_token_and_at_the_stop(tmp_path: Path) -> None:
    case = task_cases.CASES["text-generation"](tmp_path)
    whole = judge_case(case, "text-generation")
    assert set(whole.predictions) == {"wrote it did ada"}
    assert whole.series["generated"][0][-1] == generation_zoo.END
    assert set(judge_case(case, "text-generation", new_tokens=2).predictions) == {"wrote it"}
    stopped = judged(case.model, case.data, None, runtime="onnxruntime", task_options={"stop": " did"})
    assert set(stopped.predictions) == {"wrote it"}


def test_what_does_not_fit_names_the_row(tmp_path: Path) -> None:
    folder = generation_zoo.decoder(tmp_path / "model", generation_zoo.random_table())
    rows = [{"prompt": "it", "label": "it"}, {"prompt": "it " * 30, "label": "it"}]
    data = data_zoo.jsonl(tmp_path / "data.jsonl", rows)
    with pytest.raises(DataError, match="prompt of sample 1 .* has 31 tokens, which with 8 new ones is more"):
        judged(folder, data, "text-generation", new_tokens=8, runtime="onnxruntime")
    choices = data_zoo.jsonl(tmp_path / "c.jsonl", [{"text": "it " * 40, "choices": ["a", "b"], "label": 0}])
    with pytest.raises(DataError, match="sample 0 .* has 42 tokens"):
        judged(folder, choices, "multiple-choice")
    short = data_zoo.jsonl(tmp_path / "s.jsonl", [{"text": " "}])
    with pytest.raises(DataError, match="has no text in column `text`"):
        judged(folder, short, "perplexity")


def test_what_cannot_be_judged_is_one_sentence(tmp_path: Path) -> None:
    case = task_cases.CASES["perplexity"](tmp_path)
    with pytest.raises(RequestError, match="not by random inputs"):
        judged(case.model, "random", "perplexity")
    with pytest.raises(RequestError, match="task `translation` is not one of a decoder"):
        judged(case.model, case.data, "translation")
    with pytest.raises(RequestError, match="not run by onnxruntime-genai"):
        judged(case.model, case.data, "perplexity", runtime="genai")
    with pytest.raises(RequestError, match="`stride` must be a whole number from 1 to 31"):
        judged(case.model, case.data, "perplexity", task_options={"stride": "32"})
    with pytest.raises(RequestError, match="no metric `kl_divergence`"):
        judged(case.model, case.data, "perplexity", metric="kl_divergence")
    with pytest.raises(RequestError, match="`kl_divergence` is about both models"):
        judged(case.model, case.data, "perplexity", metric="kl_divergence", max_drop=0.1, reference=True)
    (case.model / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"no tokenizer\.json"):
        judged(case.model, case.data, "perplexity")


def test_a_tokenizer_of_another_model_is_named(tmp_path: Path) -> None:
    folder = generation_zoo.decoder(tmp_path / "model", generation_zoo.random_table())
    config = json.loads((folder / "genai_config.json").read_text(encoding="utf-8"))
    config["model"]["vocab_size"] = 8
    (folder / "genai_config.json").write_text(json.dumps(config), encoding="utf-8")
    data = data_zoo.jsonl(tmp_path / "data.jsonl", [{"text": "who wrote it"}])
    with pytest.raises(DataError, match="is the tokenizer of another model"):
        judged(folder, data, "perplexity")


def test_numbers_that_are_none_leave_the_metric_unknown(tmp_path: Path) -> None:
    table = generation_zoo.random_table()
    table[IDS["bad"]] = np.nan
    folder = generation_zoo.decoder(tmp_path / "model", table)
    data = data_zoo.jsonl(tmp_path / "data.jsonl", [{"text": "good film"}, {"text": "bad film"}])
    report = judged(folder, data, "perplexity")
    assert [one is None for one in report.predictions] == [False, True]
    assert estimate(report.metrics[0], report.series).value is None


def test_parts_that_do_not_say_where_a_text_begins_are_named(tmp_path: Path) -> None:
    case = task_cases.CASES["translation"](tmp_path)
    (case.model / "decode" / "config.json").write_text('{"eos_token_id": 3}', encoding="utf-8")
    with pytest.raises(ModelFileError, match="does not say which token a text begins with"):
        judge_case(case, "translation")


def test_the_runtime_that_a_build_names_runs_the_answers(tmp_path: Path) -> None:
    case = task_cases.CASES["text-generation"](tmp_path)
    arm = Arm(artifact=str(case.model), target=Target("cpu", "cpu"), session=SessionSection(runtime="onnxruntime"))
    asked = RunArguments(
        arm=arm_arguments(arm, None),
        data=DataSection(str(case.data)),
        folder=str(case.model),
        task="text-generation",
        reference=False,
        task_options=case.options,
    )
    report = run(to_json(asked), Context())
    assert report.generation is not None
    assert report.generation.runtime.startswith("onnxruntime ")
    assert report.generation.reason == "the build names it"


@pytest.mark.hf
@pytest.mark.xdist_group("hf")
def test_a_chat_template_wraps_prompts_where_it_is_asked_for(tmp_path: Path) -> None:
    case = task_cases.CASES["text-generation"](tmp_path)
    (case.model / "chat_template.jinja").write_text("[CLS] {{ messages[0].content }}", encoding="utf-8")
    plain = judged(case.model, case.data, "text-generation", runtime="onnxruntime", task_options=case.options)
    assert any("`--task-option chat=true` wraps them" in note for note in plain.notes)
    options = {**case.options, "chat": "true"}
    chat = judged(case.model, case.data, "text-generation", runtime="onnxruntime", task_options=options)
    assert "prompts are wrapped by the chat template of the tokenizer" in chat.notes
    assert chat.series == plain.series  # the template says what the tokenizer puts before a text by itself
    (case.model / "chat_template.jinja").write_text("[CLS] [SEP]", encoding="utf-8")
    other = judged(case.model, case.data, "text-generation", runtime="onnxruntime", task_options=options)
    assert other.series != plain.series


def test_chat_is_true_or_false(tmp_path: Path) -> None:
    case = task_cases.CASES["text-generation"](tmp_path)
    with pytest.raises(RequestError, match="`true` or `false`"):
        judged(case.model, case.data, "text-generation", runtime="onnxruntime", task_options={"chat": "yes"})


def test_decoders_of_different_vocabularies_are_refused_before_they_run(tmp_path: Path) -> None:
    case = task_cases.CASES["perplexity"](tmp_path / "a")
    other = decoder_zoo.decoder_folder(tmp_path / "b")
    request = EvalRequest(
        model=str(case.model), reference=str(other), data=DataSection(str(case.data)), task="perplexity", target="cpu"
    )
    with pytest.raises(RequestError, match=r"tokens in its vocabulary and `.*` 64, so that"):
        evaluate(request, lambda event: pytest.fail(f"it was begun: {event}"))


@pytest.mark.parametrize("task", ["perplexity", "text-generation", "multiple-choice"])
def test_a_decoder_in_parts_of_fixed_shapes_is_judged_as_one_graph_is(task: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"text": " ".join(data_zoo.WORDS[4 + (start + 3 * n) % 8] for n in range(5 + start))} for start in range(9)
    ]
    if task == "text-generation":
        rows = [{"prompt": row["text"], "label": "it"} for row in rows]
    elif task == "multiple-choice":
        rows = [{**row, "choices": ["it did", "ada", "who wrote it"], "label": 0} for row in rows]
    data = data_zoo.jsonl(tmp_path / "data.jsonl", rows)
    table = generation_zoo.random_table()
    whole = judged(generation_zoo.decoder(tmp_path / "whole", table), data, task, runtime="onnxruntime")
    parts = judged(generation_zoo.decoder_parts(tmp_path / "parts", table), data, task)

    def like(values: Any) -> Any:
        return pytest.approx(values, rel=1e-5) if task == "perplexity" else values

    assert parts.predictions == like(whole.predictions)
    assert parts.series.keys() == whole.series.keys()
    for name, values in whole.series.items():
        assert parts.series[name] == like(values), name
    assert parts.generation is not None
    assert parts.generation.context_length == generation_zoo.CONTEXT
    assert parts.generation.reason == "parts are run by winml alone"
    assert parts.placement.nodes["CPUExecutionProvider"] > 0


def test_a_text_that_is_longer_than_the_parts_were_built_for_is_read_in_windows(tmp_path: Path) -> None:
    table = generation_zoo.random_table()
    text = " ".join(data_zoo.WORDS[4 + n % 8] for n in range(60))
    data = data_zoo.jsonl(tmp_path / "data.jsonl", [{"text": text}])
    whole = judged(generation_zoo.decoder(tmp_path / "whole", table), data, "perplexity", runtime="onnxruntime")
    parts = judged(generation_zoo.decoder_parts(tmp_path / "parts", table), data, "perplexity")
    assert parts.series["loss"] == pytest.approx(whole.series["loss"], rel=1e-5)
    prompt = data_zoo.jsonl(tmp_path / "prompt.jsonl", [{"prompt": text, "label": "it"}])
    with pytest.raises(DataError, match="has 61 tokens, which with 16 new ones is more than the model's 32"):
        judged(tmp_path / "parts", prompt, "text-generation")


def test_parts_that_generate_nothing_are_named(tmp_path: Path) -> None:
    folder = generation_zoo.decoder_parts(tmp_path / "parts", generation_zoo.random_table())
    listed = json.loads((folder / "parts.json").read_text(encoding="utf-8"))
    listed["parts"] = {"image": listed["parts"]["prefill"], "text": listed["parts"]["decode"]}
    (folder / "parts.json").write_text(json.dumps(listed), encoding="utf-8")
    data = data_zoo.jsonl(tmp_path / "data.jsonl", [{"text": "it did"}])
    with pytest.raises(RequestError, match="are image, text, which do not generate text"):
        judged(folder, data, "perplexity")


def test_a_reference_runs_on_the_target_that_it_was_built_for(tmp_path: Path) -> None:
    """Parts are for another device than one graph is; each runs where it belongs."""
    table = generation_zoo.random_table()
    parts = generation_zoo.decoder_parts(tmp_path / "parts", table)
    whole = generation_zoo.decoder(tmp_path / "whole", table)
    data = DataSection(str(data_zoo.jsonl(tmp_path / "data.jsonl", [{"text": "who wrote it"}, {"text": "ada did it"}])))
    request = EvalRequest(model=str(parts), reference=str(whole), data=data, task="perplexity")
    result = evaluate(request, lambda event: None)
    assert str(result.target) == "cpu"
    assert result.comparison is not None
    assert result.comparison["same_next_token"].value == 1.0
    listed = json.loads((parts / "parts.json").read_text(encoding="utf-8"))
    (parts / "parts.json").write_text(json.dumps({**listed, "target": "migraphx/gpu"}), encoding="utf-8")
    with pytest.raises(EPUnavailableError, match="built for migraphx/gpu"):
        evaluate(request, lambda event: None)
    swapped = EvalRequest(model=str(whole), reference=str(parts), data=data, task="perplexity", target="cpu")
    with pytest.raises(EPUnavailableError, match="migraphx"):
        evaluate(swapped, lambda event: None)
