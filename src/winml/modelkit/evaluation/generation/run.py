"""Worker operation: run a model that generates text over data, and score every sample."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from winml.modelkit.core import values
from winml.modelkit.core.build_folder import kind_of_parts, load_parts
from winml.modelkit.core.config import DEFAULT, HUB, RANDOM, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import RuntimeVersion
from winml.modelkit.core.errors import DataError, RequestError, SessionError
from winml.modelkit.core.generation import is_decoder_folder, read_decoder_folder
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data.chat import ChatTemplate, has_chat_template
from winml.modelkit.data.dataset import Dataset, list_columns, open_dataset
from winml.modelkit.data.row_plans import LABELS
from winml.modelkit.data.samples import Sample
from winml.modelkit.data.tables import ending_of
from winml.modelkit.data.text import TOKENIZER
from winml.modelkit.ep.discovery import distribution_version
from winml.modelkit.evaluation.generation import tasks
from winml.modelkit.evaluation.generation.judges import (
    NEW_TOKENS,
    AnswerJudge,
    Answers,
    ChoiceJudge,
    DecoderAnswers,
    Judge,
    PassageJudge,
    read_chat,
    read_stride,
)
from winml.modelkit.evaluation.generation.saved_logits import OUTPUT, LogitWriter, rows_of_text
from winml.modelkit.evaluation.generation.tokens import TextTokens
from winml.modelkit.evaluation.report import GenerationFacts, ModelOpened, RunArguments, RunReport, SamplesDone
from winml.modelkit.evaluation.run import check_request, data_facts
from winml.modelkit.evaluation.task import Task
from winml.modelkit.graph.inputs import InputSpec
from winml.modelkit.session import environment
from winml.modelkit.session.composite import Composite
from winml.modelkit.session.generation.genai_loop import GenaiGenerator
from winml.modelkit.session.generation.generator import Generator, Scorer
from winml.modelkit.session.generation.opening import open_generator
from winml.modelkit.session.generation.ort_loop import OrtGenerator
from winml.modelkit.session.generation.parts_loop import PartsGenerator
from winml.modelkit.session.generation.runtimes import choose_runtime
from winml.modelkit.session.measure import Context
from winml.modelkit.session.placement import add_placements
from winml.modelkit.session.saturation import weights_at_risk
from winml.modelkit.session.session import WinMLSession

_EVENT_EVERY_S = 0.25
_NO_CHOICE = "the loop of winml has the logits of every token"
_PARTS_REASON = "parts are run by winml alone"
_TABLES = (".jsonl", ".jsonl.gz", ".parquet", ".csv", ".tsv", ".txt")


_Kind = Literal["folder", "decoder", "pair"]
"""One graph with `genai_config.json`, a decoder in two graphs, or an encoder with a decoder."""


@dataclass(frozen=True)
class _Running:
    """A model that is open: what judges its samples, and what ran it."""

    judge: Judge
    dataset: Dataset
    facts: GenerationFacts
    sessions: Mapping[str, WinMLSession]
    """Those of ONNX Runtime; none where onnxruntime-genai has its own."""
    notes: tuple[str, ...] = ()


def run(args: dict[str, Any], context: object) -> RunReport:
    """Scores of every sample, and where and with what they were measured."""
    ctx = cast("Context", context)
    asked = values.read(RunArguments, args)
    folder = Path(asked.arm.model)
    kind = _kind_of(folder)
    task, guessed = choose_task(asked.task, asked.data, pair=kind == "pair")
    check_request(task, asked, guessed)
    notes = (guessed,) if guessed else ()
    if asked.data.source == DEFAULT:
        # Data that lies here needs no hub.
        from winml.modelkit.data.defaults import find_default

        section, said = find_default(asked.data, task.name)
        asked, notes = replace(asked, data=section), (*notes, said)
    with ExitStack() as stack:
        opened = _OPEN[kind](asked, folder, task, stack)
        series, predictions = _go_through(opened, ctx)
        return _report(asked, task, opened, series, predictions, notes=notes, stopped=ctx.stop.is_set())


def _kind_of(folder: Path) -> _Kind:
    """How a folder generates text; a RequestError for parts that do not."""
    if is_decoder_folder(folder):
        return "folder"
    parts = tuple(load_parts(folder).parts)
    kind = kind_of_parts(parts)
    if kind is None:
        raise RequestError(
            f"the parts of `{folder}` are {', '.join(parts)}, which do not generate text", hint=tasks.FOLDER_HINT
        )
    return kind


def choose_task(name: str | None, section: DataSection, *, pair: bool) -> tuple[Task, str | None]:
    """The task that was named, or the one that the columns of the data are for, with a note."""
    if section.source == RANDOM:
        raise RequestError(
            "a model that generates text is judged by texts, not by random inputs",
            hint="give them with `--data FILE`: .jsonl, .parquet, .csv, .tsv or .txt",
        )
    known = tasks.OF_PAIRS if pair else tasks.OF_DECODERS
    if name is not None:
        if name not in known:
            kind = "an encoder with a decoder" if pair else "a decoder"
            raise RequestError(
                f"task `{name}` is not one of {kind}: {', '.join(known)}", hint=did_you_mean(name, known)
            )
        return tasks.TASKS[name], None
    if section.source == DEFAULT:
        raise RequestError(
            "`--data default` needs the task, because a model that generates text has several",
            hint=f"name it with `--task`: {', '.join(known)}",
        )
    columns = list_columns(section)
    if pair:
        chosen = "automatic-speech-recognition" if "audio" in columns else tasks.ANSWER
    elif "choices" in columns:
        chosen = tasks.CHOICE
    else:
        chosen = tasks.GENERATION if {"prompt", *LABELS["prompt"]} & set(columns) else tasks.PERPLEXITY
    return tasks.TASKS[chosen], f"task `{chosen}`, by the columns of the data; `--task` names another"


def _open_data(asked: RunArguments, task: Task, folder: Path, inputs: Sequence[InputSpec] = ()) -> Dataset:
    file = Path(asked.data.source.partition("@")[0] if asked.data.source.startswith(HUB) else asked.data.source)
    if task.form != "speech" and ending_of(file) not in _TABLES:
        raise DataError(
            f"`{asked.data.source}` holds no texts", hint=f"texts are rows of a table: {', '.join(_TABLES)}"
        )
    # Answers are compared with labels where the data has them, else with those of a reference alone.
    optional = task.form in ("prompt", "speech") and asked.reference
    labels = None if optional else task.labels
    return open_dataset(asked.data, inputs, model_folder=folder, labels=labels, form=task.form)


def _open_decoder(asked: RunArguments, folder: Path, task: Task, stack: ExitStack) -> _Running:
    """A decoder in one graph."""
    described, arm = read_decoder_folder(folder), asked.arm
    tokenizer = Path(asked.data.processor or folder)
    texts = TextTokens(tokenizer, described.vocabulary)
    dataset = _open_data(asked, task, folder)
    notes = tuple(f"`{name}` of genai_config.json is not used" for name in described.ignored)
    if task.name == tasks.GENERATION:
        chosen = choose_runtime(
            arm.target,
            asked.runtime,
            folder=described,
            saved=arm.session.runtime,
            section=arm.session,
            strict_ep=arm.strict_ep,
        )
        generator = open_generator(
            folder,
            target=arm.target,
            section=arm.session,
            runtime=chosen.name,
            distribution=arm.distribution,
            strict_ep=arm.strict_ep,
        )
        stack.callback(generator.close)
        judging = _Judging(asked, texts, tokenizer, dataset, described.end_tokens, chosen.reason)
        return _answer_prompts(judging, generator, (*notes, *generator.notes))
    _refuse_genai(asked, task)
    loop = stack.enter_context(
        OrtGenerator(
            folder,
            target=arm.target,
            section=arm.session,
            distribution=arm.distribution,
            strict_ep=arm.strict_ep,
        )
    )
    judging = _Judging(asked, texts, tokenizer, dataset, described.end_tokens, _NO_CHOICE)
    return _score_texts(judging, loop, task, notes, stack)


def _open_parts(asked: RunArguments, folder: Path, task: Task, stack: ExitStack) -> _Running:
    """A decoder in two graphs, for prompts and for steps."""
    if asked.runtime == "genai":
        raise RequestError("a decoder in parts is run by winml alone, not by onnxruntime-genai")
    arm = asked.arm
    loop = stack.enter_context(
        PartsGenerator(
            folder, target=arm.target, section=arm.session, distribution=arm.distribution, strict_ep=arm.strict_ep
        )
    )
    tokenizer = Path(asked.data.processor or _find_tokenizer(loop.composite))
    texts = TextTokens(tokenizer, loop.vocabulary)
    judging = _Judging(asked, texts, tokenizer, _open_data(asked, task, tokenizer), loop.ends, _PARTS_REASON)
    if task.name == tasks.GENERATION:
        return _answer_prompts(judging, loop, loop.notes)
    return _score_texts(judging, loop, task, loop.notes, stack)


def _refuse_genai(asked: RunArguments, task: Task) -> None:
    if asked.runtime == "genai":
        raise RequestError(f"task `{task.name}` is not run by onnxruntime-genai: {_NO_CHOICE}")


def _find_tokenizer(composite: Composite) -> Path:
    """The folder with the tokenizer of parts: that of all, or that of the part which runs last."""
    places = (composite.folder, composite.part_folder("decode"))
    return next((one for one in places if (one / TOKENIZER).is_file()), composite.folder)


@dataclass(frozen=True)
class _Judging:
    """What judges need besides the model."""

    asked: RunArguments
    texts: TextTokens
    tokenizer: Path
    dataset: Dataset
    ends: tuple[int, ...]
    reason: str
    """Why this program runs it."""


def _answer_prompts(
    judging: _Judging, generator: GenaiGenerator | OrtGenerator | PartsGenerator, notes: tuple[str, ...]
) -> _Running:
    """A decoder that continues prompts."""
    asked = judging.asked
    new_tokens = asked.new_tokens or min(NEW_TOKENS, max(generator.context_length // 2, 1))
    chat = ChatTemplate(judging.tokenizer) if read_chat(asked.task_options) else None
    if chat is not None:
        notes += ("prompts are wrapped by the chat template of the tokenizer",)
    elif has_chat_template(judging.tokenizer):
        notes += ("prompts are given as they are; `--task-option chat=true` wraps them by the chat template",)
    answers = DecoderAnswers(generator, judging.texts, new_tokens=new_tokens, ends=judging.ends, chat=chat)
    judge = AnswerJudge(answers, judging.texts, ends=judging.ends, stop=asked.task_options.get("stop"))
    facts = _facts(generator, judging.reason, new_tokens=new_tokens)
    return _Running(judge, judging.dataset, facts, _sessions(generator), notes)


def _score_texts(
    judging: _Judging, loop: OrtGenerator | PartsGenerator, task: Task, notes: tuple[str, ...], stack: ExitStack
) -> _Running:
    """A decoder whose logits say how likely the tokens of texts are."""
    asked, dataset, texts = judging.asked, judging.dataset, judging.texts
    if task.name == tasks.CHOICE:
        facts = _facts(loop, judging.reason)
        return _Running(ChoiceJudge(loop, texts), dataset, facts, _sessions(loop), notes)
    window = min(asked.data.length or loop.context_length, loop.context_length)
    if window < 2:
        raise RequestError("`--length` must be at least 2 tokens: one is predicted by the one before")
    stride = read_stride(asked.task_options, window)
    rows = rows_of_text(_vocabulary(loop), len(dataset))
    writer = stack.enter_context(LogitWriter(None if asked.save is None else Path(asked.save), rows))
    passages = PassageJudge(loop, texts, writer, window=window, stride=stride)
    facts = _facts(loop, judging.reason, window=window, stride=stride)
    return _Running(passages, dataset, facts, _sessions(loop), notes)


def _vocabulary(scorer: Scorer) -> int:
    found = scorer.vocabulary
    if found is None:
        # Known after one run only; a token is always there.
        found = next(scorer.score_parts(np.zeros(1, np.int64), part=1)).shape[-1]
    return int(found)


def _facts(generator: Generator, reason: str, **more: int) -> GenerationFacts:
    return GenerationFacts(
        runtime=generator.runtime, reason=reason, context_length=generator.context_length, tokens=0, **more
    )


def _sessions(generator: GenaiGenerator | OrtGenerator | PartsGenerator) -> Mapping[str, WinMLSession]:
    return {} if isinstance(generator, GenaiGenerator) else generator.sessions


class PairAnswers:
    """Answers of an encoder with a decoder, to a text or to a recording."""

    def __init__(self, composite: Composite, texts: TextTokens, *, new_tokens: int) -> None:
        self._composite, self._texts, self._new_tokens = composite, texts, new_tokens

    def tokens_of(self, sample: Sample) -> list[int]:
        inputs = dict(sample.inputs)
        if not inputs:
            ids = self._texts.ids(sample.about["text"], sample.where)[None]
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        try:
            made = self._composite.generate(inputs, new_tokens=self._new_tokens)[0]
        except SessionError as error:
            # Parts do not say how long a text may be; the runtime does, and not for which row.
            raise SessionError(f"{sample.where} cannot be answered: {error.message}", hint=error.hint) from error
        return [int(token) for token in made]


def _open_pair(asked: RunArguments, folder: Path, task: Task, stack: ExitStack) -> _Running:
    if asked.runtime == "genai":
        raise RequestError("an encoder with a decoder is run by winml alone, not by onnxruntime-genai")
    arm = asked.arm
    composite = stack.enter_context(
        Composite(
            folder, target=arm.target, section=arm.session, distribution=arm.distribution, strict_ep=arm.strict_ep
        )
    )
    sessions = composite.sessions
    beside = _find_tokenizer(composite)
    texts = TextTokens(Path(asked.data.processor or beside), None)
    inputs = sessions["encoder"].inputs if task.form == "speech" else ()
    dataset = _open_data(asked, task, beside, inputs)
    new_tokens = asked.new_tokens or NEW_TOKENS
    answers: Answers = PairAnswers(composite, texts, new_tokens=new_tokens)
    judge = AnswerJudge(answers, texts, ends=composite.ends, words=task.form == "speech")
    facts = GenerationFacts(
        runtime=_runtime_words(),
        reason=_PARTS_REASON,
        context_length=None,
        tokens=0,
        new_tokens=new_tokens,
    )
    return _Running(judge, dataset, facts, sessions)


_OPEN: Mapping[_Kind, Callable[[RunArguments, Path, Task, ExitStack], _Running]] = {
    "folder": _open_decoder,
    "decoder": _open_parts,
    "pair": _open_pair,
}


def _runtime_words() -> str:
    runtime = environment.environment("cpu", None).runtime
    return f"{runtime.name} {runtime.version}"


def _go_through(opened: _Running, context: Context) -> tuple[dict[str, list[Any]], list[Any]]:
    series: dict[str, list[Any]] = {}
    predictions: list[Any] = []
    next_event, total = time.monotonic() + _EVENT_EVERY_S, len(opened.dataset)
    context.tell(ModelOpened(total=total))
    for sample in _until_stopped(opened.dataset, context):
        scored = opened.judge.score(sample)
        for name, value in scored.values.items():
            series.setdefault(name, []).append(value)
        predictions.append(scored.prediction)
        if time.monotonic() >= next_event:
            context.tell(SamplesDone(done=len(predictions), total=total))
            next_event = time.monotonic() + _EVENT_EVERY_S
    return series, predictions


def _until_stopped(dataset: Dataset, context: Context) -> Iterator[Sample]:
    for sample in dataset:
        if context.stop.is_set():
            return
        yield sample


def _report(
    asked: RunArguments,
    task: Task,
    opened: _Running,
    series: Mapping[str, Sequence[Any]],
    predictions: Sequence[Any],
    *,
    notes: tuple[str, ...],
    stopped: bool,
) -> RunReport:
    facts, sessions, target = opened.facts, opened.sessions, asked.arm.target
    first = next(iter(sessions.values()), None)
    found = environment.environment(target.ep, None if first is None else distribution_version(first.package))
    if first is None:
        name, _, version = facts.runtime.rpartition(" ")
        found = replace(found, runtime=RuntimeVersion(name=name, version=version))
    at_risk = [weights_at_risk(one.path, one.target) for one in sessions.values()]
    return RunReport(
        task=task.name,
        metrics=tuple(metric for metric in task.metrics if metric.series in series),
        agreement=task.agreement,
        series={name: tuple(found) for name, found in series.items()},
        predictions=tuple(predictions),
        stopped=stopped,
        data=data_facts(asked.data, opened.dataset),
        notes=(*notes, *opened.dataset.notes, *opened.notes),
        outputs=(OUTPUT,) if task.name == tasks.PERPLEXITY else (),
        # None are known of a session of onnxruntime-genai, which is on the CPU.
        placement=add_placements([one.placement for one in sessions.values()]),
        provider_options={} if first is None else first.provider_options,
        added_options={} if first is None else first.added_options,
        fixed_dims={},
        weights_at_risk=sum(filter(None, at_risk)) or None,
        environment=found,
        comparison=task.comparison,
        generation=replace(facts, tokens=opened.judge.tokens),
    )
