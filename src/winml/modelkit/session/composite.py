"""The parts of a composite model, run together: greedy decoding with a cache of keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
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
        self._stack.close()

    @property
    def sessions(self) -> Mapping[str, WinMLSession]:
        """The open sessions by part."""
        return self._sessions

    @property
    def ends(self) -> tuple[int, ...]:
        """Tokens that end a text."""
        return tuple(_Tokens(self._config()).ends)

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
        tokens = _Tokens(self._config())
        decode = self._pair if "encoder" in self._parts else self._text
        return decode(inputs, tokens, new_tokens)

    def _config(self) -> dict[str, Any]:
        """The special tokens in the config of the model."""
        folder = self.folder / self._parts["decode"].folder
        found: dict[str, Any] = {}
        for name in ("config.json", "generation_config.json"):
            if (folder / name).is_file():
                value = read_object(folder / name, lenient=True)
                found |= {key: item for key, item in value.items() if item is not None}
        return found

    def _text(self, inputs: Arrays, tokens: _Tokens, new_tokens: int) -> Ids:
        ids = inputs["input_ids"].astype(np.int64)
        mask = inputs.get("attention_mask", np.ones_like(ids)).astype(np.int64)
        self._check_sizes(mask, new_tokens)
        made, mask = self._read_prompt(ids, mask)
        for _ in range(new_tokens):
            ids = tokens.next(made["logits"])
            if tokens.finished or tokens.count == new_tokens:
                break
            mask = np.concatenate([mask, np.ones_like(ids)], axis=1)
            made = self._read("decode", ids, mask, _past(made))
        return tokens.made

    def _read_prompt(self, ids: Ids, mask: Ids) -> tuple[Arrays, Ids]:
        """The outputs for the last piece of a prompt, and the mask as wide as what was read.

        A graph of fixed width reads the prompt in pieces, the first of which is padded on the left. One that takes no
        cache reads the first piece alone, and the graph for steps the rest, one token after another.
        """
        width = self._fixed_size("prefill", "input_ids", 1)
        if width is None:
            return self._read("prefill", ids, mask, self._empty_cache(len(ids))), mask
        longest = max(1, int(mask.sum(axis=1).max()))
        ids, mask = ids[:, -longest:], mask[:, -longest:]
        cache = self._empty_cache(len(ids))
        missing = -longest % width if cache else max(0, width - longest)
        ids, mask = (np.pad(array, ((0, 0), (missing, 0))) for array in (ids, mask))
        made = self._read("prefill", ids[:, :width], mask[:, :width], cache)
        part, step = ("prefill", width) if cache else ("decode", 1)
        for end in range(width + step, ids.shape[1] + 1, step):
            made = self._read(part, ids[:, end - step : end], mask[:, :end], _past(made))
        return made, mask

    def _read(self, part: str, ids: Ids, mask: Ids, past: Arrays) -> Arrays:
        """The outputs of a part for the next tokens of texts; the mask is that of all their tokens so far."""
        count = ids.shape[1]
        # Padding is on the left, and positions count real tokens only.
        positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, -count:]
        total = self._fixed_size(part, "attention_mask", 1)
        if total is not None:  # the oldest words go, which are padding as long as the text fits
            mask = mask[:, -total:]
            mask = np.pad(mask, ((0, 0), (total - mask.shape[1], 0)))
            past = {name: _fit_past(array, total - count) for name, array in past.items()}
        return self.run(part, {"input_ids": ids, "attention_mask": mask, "position_ids": positions, **past})

    def _empty_cache(self, batch: int) -> Arrays:
        """A cache without words for the graph for prompts; nothing for one that takes none."""
        return {
            spec.name: np.zeros((batch, spec.shape[1], 0, spec.shape[3]), spec.dtype)
            for spec in self._sessions["prefill"].inputs
            if spec.name.startswith("past_")
        }

    def _fixed_size(self, part: str, name: str, axis: int) -> int | None:
        """The size of an axis of an input that a part was fixed at, for a device that needs that; None when open."""
        shapes = {spec.name: spec.shape for spec in self._sessions[part].inputs}
        size = shapes[name][axis] if name in shapes else None
        return size if isinstance(size, int) else None

    def _check_sizes(self, mask: Ids, new_tokens: int) -> None:
        """Refuse texts that do not fit into graphs of fixed shapes."""
        batch, total = self._fixed_size("decode", "input_ids", 0), self._fixed_size("decode", "attention_mask", 1)
        if batch is not None and batch != len(mask):
            raise RequestError(
                f"{len(mask)} texts were given, and `{self.folder}` was built for {batch} at a time",
                hint=f"build it with `--dim batch={len(mask)}`, or give {batch}",
            )
        needed = int(mask.sum(axis=1).max()) + new_tokens - 1
        if total is not None and needed > total:
            raise RequestError(
                f"the prompt and {new_tokens} more tokens need room for {needed}, and `{self.folder}` was built for "
                f"{total}",
                hint=f"build it with `--dim total={needed}`, shorten the prompt, or ask for fewer tokens",
            )

    def _pair(self, inputs: Arrays, tokens: _Tokens, new_tokens: int) -> Ids:
        if tokens.first is None:
            file = self.part_folder("decode") / "config.json"
            raise ModelFileError(
                f"`{file}` does not say which token a text begins with", hint="add `decoder_start_token_id` to it"
            )
        state = self.run("encoder", inputs)["last_hidden_state"]
        masks = {"encoder_attention_mask": inputs["attention_mask"]} if "attention_mask" in inputs else {}
        ids = np.full((len(state), 1), tokens.first, np.int64)
        made = self.run("prefill", {"input_ids": ids, "encoder_hidden_states": state, **masks})
        past = _past(made)
        for _ in range(new_tokens):
            ids = tokens.next(made["logits"])
            if tokens.finished or tokens.count == new_tokens:
                break
            made = self.run("decode", {"input_ids": ids, **masks, **past})
            past |= _past(made)  # those of the encoder stay as they are
        return tokens.made


def _past(made: Arrays) -> Arrays:
    """The cache that a step returns, by the input names of the next step."""
    return {f"past_{name.removeprefix('present_')}": a for name, a in made.items() if name.startswith("present_")}


def _fit_past(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """The newest words of a cache, with zeros before them, which the mask hides, where there are fewer."""
    newest = array[:, :, max(0, array.shape[2] - length) :]
    missing = length - newest.shape[2]
    return np.ascontiguousarray(np.pad(newest, ((0, 0), (0, 0), (missing, 0), (0, 0))))


class _Tokens:
    """The tokens so far, and which sequences have ended."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        ends = config.get("eos_token_id")
        self.ends = ends if isinstance(ends, list) else [] if ends is None else [ends]
        self._padding = config.get("pad_token_id", self.ends[0] if self.ends else 0)
        self.first = config.get("decoder_start_token_id", config.get("bos_token_id"))
        self._done: npt.NDArray[np.bool_] | None = None
        self._columns: list[Ids] = []

    def next(self, logits: npt.NDArray[Any]) -> Ids:
        """The likeliest token of every sequence; padding for one that has ended."""
        best: Ids = logits[:, -1].argmax(axis=-1).astype(np.int64)
        done = np.zeros(len(best), bool) if self._done is None else self._done
        best = np.where(done, np.int64(self._padding), best)
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
