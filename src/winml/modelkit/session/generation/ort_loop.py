"""Our loop over ONNX Runtime: one session, inputs and outputs bound, and a cache that is written in place.

`GroupQueryAttention` reads how long each sequence is from the mask and writes keys and values where they belong, so one
buffer of the greatest length is both past and present. Other graphs return a longer cache with every step, which
becomes the past of the next one without being copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.errors import ModelFileError, SessionError
from winml.modelkit.core.generation import IN_PLACE_ATTENTION, DecoderFolder, read_decoder_folder
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.graph.inputs import InputSpec
from winml.modelkit.graph.outline import outline
from winml.modelkit.session.generation.generator import Ids, Logits, check_prompt
from winml.modelkit.session.generation.graph_fit import check_shapes
from winml.modelkit.session.session import WinMLSession


class OrtGenerator:
    """A decoder in one session of ONNX Runtime."""

    def __init__(
        self,
        folder: str | Path | DecoderFolder,
        *,
        target: Target,
        section: SessionSection | None = None,
        distribution: str | None = None,
        strict_ep: bool = False,
    ) -> None:
        self.description = folder if isinstance(folder, DecoderFolder) else read_decoder_folder(Path(folder))
        types = {node.op_type for node in outline(self.description.model).nodes}
        self.in_place = IN_PLACE_ATTENTION in types
        """Whether the cache is one buffer that every step writes into."""
        self.session = WinMLSession(
            self.description.model, target=target, section=section, distribution=distribution, strict_ep=strict_ep
        )
        self.inputs = {spec.name: spec for spec in self.session.inputs}
        outputs = {spec.name: spec for spec in self.session.outputs}
        try:
            check_shapes(self.description, _shapes(self.inputs), _shapes(outputs))
        except ModelFileError:
            self.session.close()
            raise
        self.pairs = self.description.past_pairs()
        self._run: _Run | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of how it was opened."""
        return ()

    @property
    def runtime(self) -> str:
        import onnxruntime

        return f"onnxruntime {onnxruntime.__version__}"

    @property
    def context_length(self) -> int:
        return self.description.context_length

    @property
    def vocabulary(self) -> int | None:
        """How many tokens the logits have; None where only a run tells."""
        spec = next(one for one in self.session.outputs if one.name == "logits")
        return spec.shape[-1] if isinstance(spec.shape[-1], int) else self.description.vocabulary

    @property
    def sessions(self) -> dict[str, WinMLSession]:
        return {"model": self.session}

    def start(self, ids: Ids, mask: Ids | None = None, *, new_tokens: int) -> None:
        found = check_prompt(ids, mask, new_tokens=new_tokens, context_length=self.context_length)
        self._run = self._begin(ids, found, new_tokens)

    def next(self) -> Ids:
        if self._run is None:
            raise SessionError("`next` was called before `start`")
        return self._run.next()

    def score(self, ids: Ids, mask: Ids | None = None) -> Logits:
        """The logits after every token of texts (batch, length, vocabulary); those of padding mean nothing."""
        found = check_prompt(ids, mask, new_tokens=1, context_length=self.context_length + 1)
        return self._begin(ids, found, 0).score()

    def score_parts(self, ids: Ids, *, part: int) -> Iterator[Logits]:
        """The logits after every token of one text (tokens), for `part` tokens at a time: long texts have gigabytes."""
        text = ids[None].astype(np.int64)
        check_prompt(text, None, new_tokens=1, context_length=self.context_length + 1)
        first = text[:, :part]
        run = self._begin(first, np.ones_like(first), text.shape[1] - first.shape[1])
        yield run.score()[0]
        for start in range(part, text.shape[1], part):
            yield run.extend(text[:, start : start + part], start)[0]

    def _begin(self, ids: Ids, mask: Ids, new_tokens: int) -> _Run:
        self._run = None
        self.session.release_bound()  # the cache of the texts before
        kind = _InPlace if self.in_place else _Growing
        return kind(self, ids.astype(np.int64), mask, new_tokens)

    def close(self) -> None:
        self._run = None
        self.session.close()

    def __enter__(self) -> OrtGenerator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def empty_cache(self, batch: int, length: int) -> dict[str, npt.NDArray[Any]]:
        """Zeros for every input of the cache."""
        return {
            past: np.zeros(self._cache_shape(self.inputs[past], batch, length), self.inputs[past].dtype)
            for past, _ in self.pairs
        }

    def _cache_shape(self, spec: InputSpec, batch: int, length: int) -> tuple[int, ...]:
        """Batch, heads, length, size of a head; the last is not in every graph."""
        known = dict(zip((1, 3), (self.description.heads, self.description.head_size), strict=True))
        sizes = [spec.shape[axis] if isinstance(spec.shape[axis], int) else size for axis, size in known.items()]
        if len(spec.shape) != 4 or not all(isinstance(size, int) for size in sizes):
            raise ModelFileError(
                f"input `{spec.name}` has shape {list(spec.shape)}; a cache must be (batch, heads, length, size), with "
                "heads and size in the graph or in genai_config.json"
            )
        return (batch, int(sizes[0] or 0), length, int(sizes[1] or 0))


class _Run:
    """Texts that are being continued.

    What a step reads and writes is bound once, to arrays that stay where they are: the tokens, their positions and the
    logits. A step of a tiny model takes 30 us, and a call of numpy after it up to 10: there are as few as possible.
    """

    def __init__(self, owner: OrtGenerator, ids: Ids, mask: Ids, new_tokens: int) -> None:
        self.owner = owner
        self.ids, self.mask = ids, mask
        self.lengths: Ids = mask.sum(axis=1)
        self.binding, self._call = owner.session.new_binding()
        self.binding.bind_output("logits")
        self._prompt_logits: Logits | None = self._prompt(new_tokens)
        """Those of the prompt, until its next token is asked for."""
        self._steps = 0
        first = self._prompt_logits[np.arange(len(ids)), self._last_places()]
        self._tokens = np.empty(len(ids), np.int64)
        """The token of every sequence that a step continues."""
        self._logits = np.empty_like(first)
        """Those of a step (batch, vocabulary)."""
        _take_likeliest(first, self._tokens)

    def next(self) -> Ids:
        if self._prompt_logits is not None:
            self._prompt_logits = None  # a long prompt has gigabytes of them
        else:
            if self._steps == 0:
                self._bind_step()
            self._step()
            self._steps += 1
            _take_likeliest(self._logits, self._tokens)
        return self._tokens.copy()

    def score(self) -> Logits:
        """The logits after every token of the prompt, where the tokens were given."""
        assert self._prompt_logits is not None
        return self._prompt_logits

    def extend(self, ids: Ids, done: int) -> Logits:
        """The logits after further tokens of one text (1, tokens) without padding, of which `done` have run."""
        self._take_past()
        self.binding.bind_output("logits")  # its shape is that of the run before
        places = np.arange(done + ids.shape[1])[None]
        return self._run_prompt(ids, np.ones_like(places), places[:, done:]).copy()

    def _prompt(self, new_tokens: int) -> Logits:
        raise NotImplementedError

    def _take_past(self) -> None:
        """Have the next run read what the last one wrote."""

    def _step(self) -> None:
        raise NotImplementedError

    def _last_places(self) -> Ids:
        raise NotImplementedError

    def _run_prompt(self, ids: Ids, mask: Ids, positions: Ids) -> Logits:
        # Kept: the binding holds addresses only.
        self._bound = (np.ascontiguousarray(ids), np.ascontiguousarray(mask), np.ascontiguousarray(positions))
        for name, array in zip(("input_ids", "attention_mask", "position_ids"), self._bound, strict=True):
            self._bind(name, array)
        self._call()
        logits: Logits = self.binding.get_outputs()[0].numpy()
        return logits

    def _bind_step(self) -> None:
        import onnxruntime

        self._bind("input_ids", self._tokens[:, None])
        self._bind("position_ids", self._positions)
        logits = onnxruntime.OrtValue.ortvalue_from_numpy(self._logits[:, None])
        self.binding.bind_ortvalue_output("logits", logits)

    def _bind(self, name: str, array: Ids) -> None:
        if name in self.owner.inputs:
            self.binding.bind_cpu_input(name, array)

    _positions: Ids
    """Where the tokens of a step stand (batch, 1)."""


class _InPlace(_Run):
    """The cache is one buffer of the greatest length; padding is on the right, because lengths count from the left."""

    def _prompt(self, new_tokens: int) -> Logits:
        import onnxruntime

        batch, longest = len(self.ids), int(self.lengths.max())
        moved = np.zeros((batch, longest), np.int64)
        for row, length in enumerate(self.lengths):
            moved[row, :length] = self.ids[row, self.mask[row] > 0]
        self._cache = self.owner.empty_cache(batch, longest + new_tokens)
        for past, present in self.owner.pairs:
            value = onnxruntime.OrtValue.ortvalue_from_numpy(self._cache[past])
            self.binding.bind_ortvalue_input(past, value)
            self.binding.bind_ortvalue_output(present, value)
        places = np.broadcast_to(np.arange(longest), (batch, longest))
        self._positions = self.lengths[:, None] - 1
        self._ones = np.ones((1, longest + new_tokens), np.int64)
        self._batch, self._longest = batch, longest
        self._is_uneven = bool((self.lengths != longest).any())
        self._takes_positions = "position_ids" in self.owner.inputs
        return self._run_prompt(moved, (places < self.lengths[:, None]).astype(np.int64), places)

    def _last_places(self) -> Ids:
        return self.lengths - 1

    def _step(self) -> None:
        length = self._longest + self._steps + 1
        if self._is_uneven or self._takes_positions:
            self._positions += 1
        if self._is_uneven:
            self._text_mask = (np.arange(length) <= self._positions).astype(np.int64)
        elif self._batch == 1:
            self._text_mask = self._ones[:, :length]  # the begin of the buffer, which needs no copy
        else:
            self._text_mask = np.ones((self._batch, length), np.int64)
        self._bind("attention_mask", self._text_mask)
        self._call()

    def score(self) -> Logits:
        found = super().score()
        placed = np.zeros((*self.ids.shape, found.shape[-1]), found.dtype)
        for row, length in enumerate(self.lengths):
            placed[row, self.mask[row] > 0] = found[row, :length]
        return placed


class _Growing(_Run):
    """Every step returns a longer cache; padding stays on the left, and the mask hides it."""

    def _prompt(self, new_tokens: int) -> Logits:
        import onnxruntime

        places: Ids = np.maximum(np.cumsum(self.mask, axis=1) - 1, 0)
        self._positions = np.ascontiguousarray(places[:, -1:])
        self._whole_mask = np.concatenate([self.mask, np.ones((len(self.ids), new_tokens), np.int64)], axis=1)
        self._empty = self.owner.empty_cache(len(self.ids), 0)
        for past, present in self.owner.pairs:
            self.binding.bind_ortvalue_input(past, onnxruntime.OrtValue.ortvalue_from_numpy(self._empty[past]))
            self.binding.bind_output(present)
        return self._run_prompt(self.ids, self.mask, places)

    def _last_places(self) -> Ids:
        return np.full(len(self.ids), self.ids.shape[1] - 1)

    def _take_past(self) -> None:
        for (past, present), value in zip(self.owner.pairs, self.binding.get_outputs()[1:], strict=True):
            self.binding.bind_ortvalue_input(past, value)
            self.binding.bind_output(present)

    def _step(self) -> None:
        self._take_past()
        self._positions += 1
        self._text_mask = np.ascontiguousarray(self._whole_mask[:, : self.ids.shape[1] + self._steps + 1])
        self._bind("attention_mask", self._text_mask)
        self._call()


def _take_likeliest(logits: Logits, tokens: Ids) -> None:
    """Write the token with the highest logit of every sequence; numpy compares half precision in software, slowly."""
    wide = logits.astype(np.float32) if logits.dtype == np.float16 else logits
    wide.argmax(axis=-1, out=tokens)


def _shapes(specs: dict[str, InputSpec]) -> dict[str, tuple[int | str | None, ...]]:
    return {name: spec.shape for name, spec in specs.items()}
