"""The parts of a composite model, run together: greedy decoding with a cache of keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.build_folder import PartEntry, load_parts
from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.graph.inputs import Arrays
from winml.modelkit.session.part_texts import DecoderText, PairText
from winml.modelkit.session.session import WinMLSession

Ids = npt.NDArray[np.int64]


class Composite:
    """Sessions of all parts, with greedy decoding."""

    def __init__(
        self,
        folder: str | Path,
        *,
        target: Target,
        section: SessionSection | None = None,
        distribution: str | None = None,
        strict_ep: bool = False,
    ) -> None:
        self._distribution, self._strict_ep = distribution, strict_ep
        self.folder = Path(folder)
        self._parts = dict(load_parts(self.folder).parts)
        self._stack = ExitStack()
        self._sessions = {
            name: self._stack.enter_context(self._open(entry, target, section or SessionSection()))
            for name, entry in self._parts.items()
        }

    def _open(self, entry: PartEntry, target: Target, section: SessionSection) -> WinMLSession:
        return WinMLSession(
            self.folder / entry.folder / entry.file,
            target=target,
            section=section,
            strict_ep=self._strict_ep,
            distribution=self._distribution,
        )

    def __enter__(self) -> Composite:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    @property
    def sessions(self) -> Mapping[str, WinMLSession]:
        """The open sessions by part."""
        return self._sessions

    @property
    def ends(self) -> tuple[int, ...]:
        """Tokens that end a text."""
        return tuple(_Tokens(self.config).ends)

    @property
    def first_token(self) -> int | None:
        """The token that the decoder of a pair begins a text with."""
        found: int | None = _Tokens(self.config).first
        return found

    @property
    def padding_token(self) -> int:
        """The token that fills texts up."""
        return _Tokens(self.config).padding

    def part_folder(self, part: str) -> Path:
        return self.folder / self._parts[part].folder

    def run(self, part: str, inputs: Arrays) -> Arrays:
        """The outputs of one part; inputs that its graph does not have are skipped."""
        session = self._sessions[part]
        names = {spec.name for spec in session.inputs}
        made: Arrays = session.run({name: array for name, array in inputs.items() if name in names})
        return made

    def generate(self, inputs: Arrays, *, new_tokens: int) -> Ids:
        """The tokens after the input, or the output tokens of a pair; ends early when all sequences have ended."""
        if "decode" not in self._parts:
            raise RequestError(f"the parts of `{self.folder}` do not generate text: {', '.join(self._parts)}")
        tokens = _Tokens(self.config)
        decode = self._pair if "encoder" in self._parts else self._text
        return decode(inputs, tokens, new_tokens)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The config of the model with that of its generation, where the special tokens are."""
        folder = self.folder / self._parts["decode"].folder
        found: dict[str, Any] = {}
        for name in ("config.json", "generation_config.json"):
            if (folder / name).is_file():
                value = read_object(folder / name, lenient=True)
                found |= {key: item for key, item in value.items() if item is not None}
        return found

    def fixed_size(self, part: str, name: str, axis: int) -> int | None:
        """The size of an axis of an input that a part was fixed at, for a device that needs that; None when open."""
        shapes = {spec.name: spec.shape for spec in self._sessions[part].inputs}
        size = shapes[name][axis] if name in shapes else None
        return size if isinstance(size, int) else None

    def _text(self, inputs: Arrays, tokens: _Tokens, new_tokens: int) -> Ids:
        ids = inputs["input_ids"].astype(np.int64)
        mask = inputs.get("attention_mask", np.ones_like(ids)).astype(np.int64)
        self.check_text(mask, new_tokens)
        text = DecoderText(self)
        for piece in text.read(ids, mask):
            logits = piece
        return _continue(text, logits, tokens, new_tokens)

    def _pair(self, inputs: Arrays, tokens: _Tokens, new_tokens: int) -> Ids:
        text = PairText(self)
        return _continue(text, text.read(inputs, self.check_pair(inputs, new_tokens)), tokens, new_tokens)

    def check_text(self, mask: Ids, new_tokens: int) -> None:
        """Refuse texts that do not fit into graphs of fixed shapes."""
        self._check_batch("input_ids", len(mask))
        total = self.fixed_size("decode", "attention_mask", 1)
        needed = int(mask.sum(axis=1).max()) + new_tokens - 1
        if total is not None and needed > total:
            raise RequestError(
                f"the prompt and {new_tokens} more tokens need room for {needed}, and `{self.folder}` was built for "
                f"{total}",
                hint=f"build it with `--dim total={needed}`, shorten the prompt, or ask for fewer tokens",
            )

    def check_pair(self, inputs: Arrays, new_tokens: int) -> int:
        """The token that every text begins with; raises for texts that graphs of fixed shapes cannot say."""
        first = self.first_token
        if first is None:
            file = self.part_folder("decode") / "config.json"
            raise ModelFileError(
                f"`{file}` does not say which token a text begins with", hint="add `decoder_start_token_id` to it"
            )
        self._check_batch("input_ids", len(next(iter(inputs.values()))))
        caches = [spec for spec in self._sessions["decode"].inputs if spec.name.startswith("past_")]
        own = (spec for spec in caches if "_encoder" not in spec.name and len(spec.shape) == 4)
        closed = next((spec for spec in own if isinstance(spec.shape[2], int)), None)
        total = self.fixed_size("decode", "decoder_attention_mask", 1)
        if closed is not None and total is None:
            raise ModelFileError(
                f"the part `decode` of `{self.folder}` has a cache of fixed length (`{closed.name}`) and takes no "
                "`decoder_attention_mask`, so that it cannot tell words from what fills the cache up",
                hint="build the folder again",
            )
        if total is not None and new_tokens > total:
            raise RequestError(
                f"{new_tokens} tokens were asked for, and `{self.folder}` was built for {total}",
                hint=f"build it with `--dim total={new_tokens}`, or ask for fewer tokens",
            )
        return first

    def _check_batch(self, name: str, given: int) -> None:
        batch = self.fixed_size("decode", name, 0)
        if batch is not None and batch != given:
            raise RequestError(
                f"{given} texts were given, and `{self.folder}` was built for {batch} at a time",
                hint=f"build it with `--dim batch={given}`, or give {batch}",
            )


def _continue(text: DecoderText | PairText, logits: npt.NDArray[Any], tokens: _Tokens, new_tokens: int) -> Ids:
    """The tokens after what was read."""
    for _ in range(new_tokens):
        ids = tokens.next(logits)
        if tokens.finished or tokens.count == new_tokens:
            break
        logits = text.step(ids)
    return tokens.made


class _Tokens:
    """The tokens so far, and which sequences have ended."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        ends = config.get("eos_token_id")
        self.ends = ends if isinstance(ends, list) else [] if ends is None else [ends]
        self.padding: int = config.get("pad_token_id", self.ends[0] if self.ends else 0)
        self.first = config.get("decoder_start_token_id", config.get("bos_token_id"))
        self._done: npt.NDArray[np.bool_] | None = None
        self._columns: list[Ids] = []

    def next(self, logits: npt.NDArray[Any]) -> Ids:
        """The likeliest token of every sequence; padding for one that has ended."""
        best: Ids = logits[:, -1].argmax(axis=-1).astype(np.int64)
        done = np.zeros(len(best), bool) if self._done is None else self._done
        best = np.where(done, np.int64(self.padding), best)
        self._done = done | np.isin(best, self.ends)
        self._columns.append(best)
        return best[:, None]

    @property
    def finished(self) -> bool:
        return self._done is not None and bool(self._done.all())

    @property
    def count(self) -> int:
        return len(self._columns)

    @property
    def made(self) -> Ids:
        found: Ids = np.stack(self._columns, axis=1)
        return found
