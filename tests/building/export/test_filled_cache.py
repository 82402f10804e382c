"""Decoders of pairs in PyTorch, with a cache that is filled up on the left."""

from __future__ import annotations

from typing import Any

import pytest

from winml.modelkit.building.export.signature import filled_cache_inputs
from winml.modelkit.core.config import InputSection

pytestmark = [pytest.mark.hf, pytest.mark.xdist_group("hf")]

SIZES = {"batch": 2, "decoder_sequence": 1, "past": 4, "sequence": 6}
BART: dict[str, Any] = {
    "vocab_size": 40, "d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 32,
    "init_std": 0.5,
}  # fmt: skip
T5: dict[str, Any] = {
    "vocab_size": 40, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "initializer_factor": 3.0,
}  # fmt: skip


def _takes(kind: str, config: dict[str, Any], *, positions: bool) -> bool:
    import torch
    import transformers

    from winml.modelkit.building.export.filled_cache import takes_filled_cache
    from winml.modelkit.building.export.parts import PairDecode

    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForConditionalGeneration")(getattr(transformers, f"{kind}Config")(**config))
    caches = [
        InputSection(f"past_{layer}_{side}_{what}", "float32", ("batch", 2, length, 8))
        for layer in range(2)
        for side, length in (("decoder", "past"), ("encoder", "sequence"))
        for what in ("key", "value")
    ]
    words = InputSection("input_ids", "int64", ("batch", "decoder_sequence"), 3, 39)
    mask = InputSection("encoder_attention_mask", "int64", ("batch", "sequence"), 0, 1, "padding")
    inputs = (words, mask, *filled_cache_inputs(takes_positions=positions), *caches)
    return takes_filled_cache(PairDecode(model.eval()), inputs, SIZES)


def test_a_table_of_positions_needs_the_places_and_relative_ones_do_not() -> None:
    assert _takes("Bart", BART, positions=True)
    assert not _takes("Bart", BART, positions=False), "the length of the cache is taken for the place"
    assert _takes("T5", T5, positions=False)
