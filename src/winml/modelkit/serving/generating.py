"""Models that generate text, open in a worker: prompts and conversations to text, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.generation import is_decoder_folder, read_decoder_folder
from winml.modelkit.data.chat import ChatTemplate, has_chat_template
from winml.modelkit.data.samples import Sample
from winml.modelkit.data.text import TOKENIZER
from winml.modelkit.evaluation.generation import tasks
from winml.modelkit.evaluation.generation.judges import NEW_TOKENS, cut_end, read_chat
from winml.modelkit.evaluation.generation.run import PairAnswers
from winml.modelkit.evaluation.generation.tokens import TextTokens
from winml.modelkit.serving.prediction import (
    GenerateArguments,
    GeneratedText,
    Given,
    OpenArguments,
    RuntimeFacts,
)
from winml.modelkit.serving.preparing import Preparer
from winml.modelkit.serving.text_stream import TextStream
from winml.modelkit.session import environment
from winml.modelkit.session.composite import Composite
from winml.modelkit.session.generation.generator import Generator, Ids
from winml.modelkit.session.generation.opening import open_generator
from winml.modelkit.session.generation.ort_loop import OrtGenerator
from winml.modelkit.session.generation.runtimes import choose_runtime
from winml.modelkit.session.measure import Flag
from winml.modelkit.session.session import WinMLSession

OnPiece = Callable[[str, int], None]
"""Gets text and the number of tokens so far."""
_ESCAPES = {"\\n": "\n", "\\t": "\t"}
_WHERE = "the prompt"


@dataclass(frozen=True)
class Decoder:
    """A decoder with its tokenizer."""

    generator: Generator
    texts: TextTokens
    ends: tuple[int, ...]
    tokenizer: Path
    facts: RuntimeFacts
    options: Mapping[str, str]
    sessions: Mapping[str, WinMLSession]
    notes: tuple[str, ...]

    def ask(self, given: Given, on_piece: OnPiece, stop: Flag) -> GeneratedText:
        """The answer to a prompt as the options of the task say: wrapped by the chat template, ended by a text."""
        prompt = given.prompt if given.prompt is not None else given.text
        if prompt is None:
            raise RequestError(f"the model generates text, and takes no {given.kind}", hint="give it a `--prompt`")
        if given.text_pair is not None or given.labels:
            raise RequestError("a model that generates text takes a prompt alone")
        if read_chat(self.options):
            text, special = ChatTemplate(self.tokenizer).render(prompt, _WHERE), False
        else:
            text, special = prompt, True
        end = self.options.get("stop")
        stops = () if end is None else (_ESCAPES.get(end, end),)
        ids = self.texts.ids(text, _WHERE, special=special)
        return self._generate(ids, stops, None, on_piece, stop)

    def generate(self, asked: GenerateArguments, on_piece: OnPiece, stop: Flag) -> GeneratedText:
        """The answer to a prompt as it is, or to a conversation by the chat template."""
        if asked.messages:
            turns = [{"role": turn.role, "content": turn.content} for turn in asked.messages]
            text, special = ChatTemplate(self.tokenizer).render_turns(turns, "the messages"), False
        else:
            text, special = asked.prompt or "", True
        ids = self.texts.ids(text, _WHERE, special=special)
        return self._generate(ids, asked.stop, asked.new_tokens, on_piece, stop)

    def _generate(
        self, ids: Ids, stops: tuple[str, ...], new_tokens: int | None, on_piece: OnPiece, stop: Flag
    ) -> GeneratedText:
        context = self.generator.context_length
        room = context - len(ids)
        # Where nobody said how many, a long prompt gets as many as there is room for.
        count = min(self.facts.new_tokens, max(room, 1)) if new_tokens is None else new_tokens
        if count > room:
            raise RequestError(
                f"the prompt has {len(ids)} tokens, which with {count} new ones is more than the model's {context}",
                hint="shorten it, or ask for fewer",
            )
        stream, made, finish = TextStream(self.texts.decode, stops), 0, "length"
        self.generator.start(ids[None], new_tokens=count)
        for _ in range(count):
            token = int(self.generator.next()[0])
            made += 1
            if token in self.ends:
                finish = "stop"
                break
            piece = stream.push(token)
            if piece:
                on_piece(piece, made)
            if stream.is_stopped:
                finish = "stop"
                break
            if stop.is_set():
                break
        rest = stream.finish()
        if rest:
            on_piece(rest, made)
        answer = GeneratedText(text=stream.text, prompt_tokens=len(ids), tokens=made)
        return replace(answer, finish="stop" if finish == "stop" else "length")


@dataclass(frozen=True)
class Pair:
    """An encoder with a decoder, which answers a text or a recording at once."""

    composite: Composite
    texts: TextTokens
    folder: Path
    facts: RuntimeFacts
    notes: tuple[str, ...] = ()

    @property
    def sessions(self) -> Mapping[str, WinMLSession]:
        return self.composite.sessions

    def ask(self, given: Given, on_piece: OnPiece, stop: Flag) -> GeneratedText:
        answers = PairAnswers(self.composite, self.texts, new_tokens=self.facts.new_tokens)
        made = cut_end(answers.tokens_of(self._sample(given)), self.composite.ends)
        finish = "stop" if made and made[-1] in self.composite.ends else "length"
        text = self.texts.decode([token for token in made if token not in self.composite.ends])
        on_piece(text, len(made))
        answer = GeneratedText(text=text, tokens=len(made))
        return replace(answer, finish="stop" if finish == "stop" else "length")

    def _sample(self, given: Given) -> Sample:
        specs = self.sessions["encoder"].inputs
        text = given.prompt if given.prompt is not None else given.text
        if text is not None:
            if not text.strip():
                raise RequestError("the text is empty")
            return Sample({}, about={"text": text}, where="the text")
        return Preparer(self.folder, None).prepare(given, specs).sample


def open_text_model(asked: OpenArguments, stack: ExitStack) -> Decoder | Pair:
    """The model in a folder that generates text; `stack` closes it."""
    return (_open_decoder if is_decoder_folder(Path(asked.arm.model)) else _open_pair)(asked, stack)


def _open_decoder(asked: OpenArguments, stack: ExitStack) -> Decoder:
    arm, folder, tokenizer = asked.arm, Path(asked.arm.model), Path(asked.folder)
    described = read_decoder_folder(folder)
    texts = TextTokens(tokenizer, described.vocabulary)
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
    chat = has_chat_template(tokenizer)
    notes = (*(f"`{name}` of genai_config.json is not used" for name in described.ignored), *generator.notes)
    facts = RuntimeFacts(
        name=generator.runtime,
        reason=chosen.reason,
        context_length=generator.context_length,
        new_tokens=asked.new_tokens or min(NEW_TOKENS, max(described.context_length // 2, 1)),
        chat=chat,
    )
    sessions = {"model": generator.session} if isinstance(generator, OrtGenerator) else {}
    return Decoder(generator, texts, described.end_tokens, tokenizer, facts, asked.task_options, sessions, notes)


def _open_pair(asked: OpenArguments, stack: ExitStack) -> Pair:
    if asked.runtime == "genai":
        raise RequestError("an encoder with a decoder is run by winml alone, not by onnxruntime-genai")
    arm, folder = asked.arm, Path(asked.arm.model)
    composite = stack.enter_context(
        Composite(
            folder, target=arm.target, section=arm.session, distribution=arm.distribution, strict_ep=arm.strict_ep
        )
    )
    if "encoder" not in composite.sessions or "decode" not in composite.sessions:
        raise RequestError(
            f"the parts of `{folder}` are {', '.join(composite.sessions)}: an encoder with a decoder answers here",
            hint=tasks.FOLDER_HINT,
        )
    places = (Path(asked.folder), folder, composite.part_folder("decode"))
    beside = next((place for place in places if (place / TOKENIZER).is_file()), folder)
    runtime = environment.environment("cpu", None).runtime
    facts = RuntimeFacts(
        name=f"{runtime.name} {runtime.version}",
        reason="parts are run by winml alone",
        context_length=None,
        new_tokens=asked.new_tokens or NEW_TOKENS,
        chat=False,
    )
    return Pair(composite, TextTokens(beside, None), beside, facts)
