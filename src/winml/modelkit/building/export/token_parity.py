"""Compares the tokens that an exported decoder generates with those of PyTorch's own `generate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.building.export.result import TokenParity
from winml.modelkit.building.export.signature import FIRST_WORD
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed
from winml.modelkit.core.generation import DecoderFolder
from winml.modelkit.core.measurement import UNTIMED
from winml.modelkit.core.target import Target
from winml.modelkit.session.generation.generator import generate
from winml.modelkit.session.generation.ort_loop import OrtGenerator

Ids = npt.NDArray[np.int64]

PROMPTS = (9, 5)
"""Tokens of every prompt; the shorter one is padded."""
TOKENS = 64
FEW_TOKENS = 16
"""For a large model, whose steps take long in PyTorch."""
LARGE = 10_000_000
TIE = 1e-3
"""The likeliest token may be another one where PyTorch's two best differ by less of its largest number: what its
outputs may differ by."""


@dataclass(frozen=True)
class AskedTokens:
    """Prompts, and what PyTorch's `generate` says after them."""

    ids: Ids
    mask: Ids
    tokens: Ids


def ask_tokens(decoder: DecoderFolder, reference: Any, seed: int) -> AskedTokens:
    """Prompts of different lengths, padded on the left, and PyTorch's tokens."""
    size = sum(weight.numel() for weight in reference.parameters())
    lengths = [max(1, min(length, decoder.context_length // 2)) for length in PROMPTS]
    tokens = min(TOKENS if size < LARGE else FEW_TOKENS, decoder.context_length - max(lengths))
    ids, mask = _make_prompts(decoder.vocabulary or FIRST_WORD + 1, lengths, seed)
    return AskedTokens(ids, mask, _generate(reference, ids, mask, tokens))


def compare_tokens(decoder: DecoderFolder, asked: AskedTokens, load: Callable[[], Any]) -> TokenParity:
    """How the tokens compare; raises when a token is another one that PyTorch does not rate alike.

    `load` gives the model of PyTorch again, which is needed for a difference only.
    """
    wanted = asked.tokens
    with OrtGenerator(decoder, target=Target("cpu", "cpu"), section=UNTIMED) as generator:
        made = generate(generator, asked.ids, asked.mask, new_tokens=wanted.shape[1], ends=())
    ties = 0
    for row in range(len(wanted)):
        places = np.flatnonzero(made[row] != wanted[row])
        if not places.size:
            continue
        text = np.concatenate([asked.ids[row][asked.mask[row] > 0], wanted[row, : places[0]]])
        _require_tie(load(), text, made=int(made[row, places[0]]), wanted=int(wanted[row, places[0]]))
        ties += 1
    equal = int((made == wanted).sum())
    return TokenParity(prompts=len(wanted), tokens=wanted.shape[1], equal=equal, ties=ties)


def _make_prompts(vocabulary: int, lengths: Sequence[int], seed: int) -> tuple[Ids, Ids]:
    rng = np.random.default_rng(seed)
    width = max(lengths)
    ids = rng.integers(min(FIRST_WORD, vocabulary - 1), vocabulary, (len(lengths), width))
    mask: Ids = (np.arange(width)[None] >= width - np.array(lengths)[:, None]).astype(np.int64)
    return ids, mask


def _generate(reference: Any, ids: Ids, mask: Ids, tokens: int) -> Ids:
    """The likeliest tokens by PyTorch, without what a generation config changes about them."""
    import torch
    from transformers import GenerationConfig

    config = GenerationConfig(
        do_sample=False,
        num_beams=1,
        max_new_tokens=tokens,
        min_new_tokens=tokens,
        pad_token_id=0,
        eos_token_id=None,
        repetition_penalty=1.0,
        no_repeat_ngram_size=0,
        use_cache=True,
    )
    reference.generation_config = config  # what is not named in a config comes from that of the model
    with torch.inference_mode():
        made = reference.generate(
            torch.from_numpy(ids), attention_mask=torch.from_numpy(mask), generation_config=config
        )
    found: Ids = made[:, ids.shape[1] :].numpy()
    return found


def _require_tie(reference: Any, text: Ids, *, made: int, wanted: int) -> None:
    """Raise unless PyTorch rates both tokens alike after a text."""
    import torch

    with torch.inference_mode():
        logits = reference(input_ids=torch.from_numpy(text[None])).logits[0, -1].numpy()
    gap = float(logits[wanted] - logits[made]) / max(float(np.abs(logits).max()), 1e-6)
    if gap > TIE:
        raise CheckFailed(
            f"after {len(text)} tokens the likeliest is {made} but PyTorch's `generate` has {wanted}, whose logit is "
            f"larger by {gap:.2g} of the largest; {TIE:g} is allowed",
            hint="try another `--exporter`; `--no-parity` exports without comparing",
        )
    if gap < -TIE:
        # Such as a cache that forgets what the mask of the class would still show.
        raise CheckFailed(
            f"after {len(text)} tokens PyTorch's `generate` has {wanted}, but without a cache PyTorch finds {made} "
            f"likelier, by {-gap:.2g} of the largest logit: what its cache holds is not all of the text",
            hint="`--no-parity` exports it with a cache of the whole text, without comparing",
        )
