"""Our loop over the parts of a composite model: a decoder in two graphs, and an encoder with a decoder.

Such folders are built for devices with fixed shapes, and for pairs on any device. A step goes through the memory of
the process: what a part gives becomes what the next one takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from winml.modelkit.core.errors import ModelFileError, RequestError, SessionError
from winml.modelkit.core.generation import find_length
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.graph.inputs import Arrays
from winml.modelkit.session.composite import Composite
from winml.modelkit.session.generation.generator import Ids, Logits, check_prompt
from winml.modelkit.session.part_texts import DecoderText, PairText
from winml.modelkit.session.session import WinMLSession

DEFAULT_LENGTH = 2048
"""Tokens of a text where neither the graphs nor the config of the model say how many it takes."""


class _PartsLoop:
    """What both kinds of parts have in common."""

    def __init__(
        self,
        folder: str | Path,
        *,
        target: Target,
        section: SessionSection | None = None,
        distribution: str | None = None,
        strict_ep: bool = False,
    ) -> None:
        self.composite = Composite(
            folder, target=target, section=section, distribution=distribution, strict_ep=strict_ep
        )
        self._logits: Logits | None = None
        """Those of what was read, until its next token is asked for."""
        self._tokens: Ids = np.zeros(0, np.int64)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of how it was opened."""
        return ()

    @property
    def runtime(self) -> str:
        import onnxruntime

        return f"onnxruntime {onnxruntime.__version__}"

    @property
    def sessions(self) -> Mapping[str, WinMLSession]:
        return self.composite.sessions

    @property
    def ends(self) -> tuple[int, ...]:
        """Tokens that end a text."""
        return self.composite.ends

    @property
    def vocabulary(self) -> int | None:
        """How many tokens the logits have; None where only a run tells."""
        spec = next((one for one in self.sessions["decode"].outputs if one.name == "logits"), None)
        size = spec.shape[-1] if spec is not None and spec.shape else None
        found = size if isinstance(size, int) else self.composite.config.get("vocab_size")
        return found if isinstance(found, int) else None

    def require_vocabulary(self) -> int:
        """The vocabulary, for who makes up tokens."""
        found = self.vocabulary
        if found is None:
            file = self.composite.part_folder("decode") / "config.json"
            raise ModelFileError(f"`{file}` has no `vocab_size`, so no prompt can be made", hint="add it to the file")
        return found

    def next(self) -> Ids:
        """The next token of every text (batch); runs a step, except for the first, which was read already."""
        if self._logits is None:
            if not self._tokens.size:
                raise SessionError("`next` was called before `start`")
            self._logits = self._step(self._tokens[:, None])
        self._tokens = self._logits[:, -1].astype(np.float32, copy=False).argmax(axis=-1).astype(np.int64)
        self._logits = None
        return self._tokens.copy()

    def _step(self, ids: Ids) -> Logits:
        raise NotImplementedError

    def close(self) -> None:
        self.composite.close()

    def __exit__(self, *_: object) -> None:
        self.close()


class PartsGenerator(_PartsLoop):
    """A decoder in two graphs: `prefill` reads prompts, `decode` one token after another."""

    def __init__(self, folder: str | Path, **how: Any) -> None:
        super().__init__(folder, **how)
        self._text = DecoderText(self.composite)

    @property
    def piece_length(self) -> int | None:
        """Tokens of a prompt that one run reads; None where the graph leaves that open."""
        return self.composite.fixed_size("prefill", "input_ids", 1)

    @property
    def context_length(self) -> int:
        fixed = self.composite.fixed_size("decode", "attention_mask", 1)
        return fixed or find_length(self.composite.config) or DEFAULT_LENGTH

    def start(self, ids: Ids, mask: Ids | None = None, *, new_tokens: int) -> None:
        # The last token is not read again, so that it needs no room.
        found = check_prompt(ids, mask, new_tokens=new_tokens, context_length=self.context_length + 1)
        self.composite.check_text(found, new_tokens)
        for piece in self._text.read(ids.astype(np.int64), found):
            self._logits = piece

    def score_parts(self, ids: Ids, *, part: int) -> Iterator[Logits]:
        """The logits after every token of one text (tokens), a piece after another; `part` is for open shapes."""
        text = ids[None].astype(np.int64)
        check_prompt(text, None, new_tokens=1, context_length=self.context_length + 1)
        self.composite.check_text(np.ones_like(text), 1)
        for piece in self._text.read(text, np.ones_like(text), piece=part):
            yield piece[0]

    def _step(self, ids: Ids) -> Logits:
        return self._text.step(ids)

    def __enter__(self) -> PartsGenerator:
        return self


class PairGenerator(_PartsLoop):
    """An encoder with a decoder: what it is started with goes to the encoder."""

    def __init__(self, folder: str | Path, **how: Any) -> None:
        super().__init__(folder, **how)
        self._text = PairText(self.composite)

    @property
    def context_length(self) -> int | None:
        """Tokens that the decoder says at most; None where neither the graph nor the config says."""
        return self.composite.fixed_size("decode", "decoder_attention_mask", 1) or find_length(self.composite.config)

    def draw_inputs(self, *, batch: int, length: int, seed: int) -> Arrays:
        """Inputs of the encoder at random: so many tokens, or one image or sound of the size of its graph."""
        rng = np.random.default_rng(seed)
        found: Arrays = {}
        for spec in self.sessions["encoder"].inputs:
            if spec.name == "attention_mask":
                found[spec.name] = np.ones((batch, length), np.int64)
            elif spec.name == "input_ids":
                found[spec.name] = rng.integers(0, self.require_vocabulary(), (batch, length), np.int64)
            else:
                sizes = [size if isinstance(size, int) else None for size in spec.shape[1:]]
                if None in sizes:
                    raise RequestError(
                        f"input `{spec.name}` of the encoder has an open size beside the batch: none can be drawn",
                        hint="`winml eval` runs it on data",
                    )
                found[spec.name] = rng.standard_normal((batch, *map(int, filter(None, sizes)))).astype(spec.dtype)
        return found

    def start(self, inputs: Arrays, *, new_tokens: int) -> None:
        """Run the encoder on its inputs, and the decoder on the token that a text begins with."""
        if new_tokens < 1:
            raise RequestError(f"tokens to generate must be at least 1 but got {new_tokens}")
        first = self.composite.check_pair(inputs, new_tokens)
        self._logits = self._text.read(inputs, first)

    def _step(self, ids: Ids) -> Logits:
        return self._text.step(ids)

    def __enter__(self) -> PairGenerator:
        return self
