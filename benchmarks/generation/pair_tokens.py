"""Tokens of a pair built by winml against those of PyTorch's `generate`: `pair_tokens.py SOURCE BUILD [qnn/npu]`.

Texts of a batch have different lengths and are padded, where the encoder reads texts; `--batch N` is how many.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np
import torch
import transformers

from winml.modelkit.core.target import Target
from winml.modelkit.session.composite import Composite

TOKENS = 64


def make_inputs(model: Any, batch: int) -> dict[str, np.ndarray]:
    """Inputs of the kind that the encoder reads."""
    rng = np.random.default_rng(0)
    encoder = model.get_encoder()
    config, name = encoder.config, encoder.main_input_name
    if name == "pixel_values":
        size = config.image_size if isinstance(config.image_size, int) else config.image_size[0]
        return {name: rng.normal(size=(batch, config.num_channels, size, size)).astype(np.float32)}
    if name == "input_features":
        shape = (batch, config.num_mel_bins, 2 * config.max_source_positions)
        return {name: rng.normal(size=shape).astype(np.float32)}
    ids = rng.integers(5, config.vocab_size - 5, (batch, 12))
    mask = (np.arange(12)[None] < 12 - 4 * np.arange(batch)[:, None] % 12).astype(np.int64)
    return {"input_ids": np.where(mask, ids, getattr(config, "pad_token_id", None) or 0), "attention_mask": mask}


def find_target(name: str) -> Target:
    ep, _, device = name.partition("/")
    return Target(ep, "npu" if device == "npu" else "cpu", simulated=device == "npu")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("build")
    parser.add_argument("target", nargs="?", default="cpu")
    parser.add_argument("--batch", type=int, default=1)
    asked = parser.parse_args()
    source, build = asked.source, asked.build
    transformers.logging.set_verbosity_error()
    architecture = transformers.AutoConfig.from_pretrained(source).architectures[0]
    model = getattr(transformers, architecture).from_pretrained(source).eval()
    inputs = make_inputs(model, asked.batch)
    decoder = model.config.get_text_config(decoder=True)
    limit = (
        getattr(decoder, "max_position_embeddings", None) or getattr(decoder, "max_target_positions", None) or TOKENS
    )
    tokens = min(TOKENS, limit - 2)
    start = getattr(model.generation_config, "decoder_start_token_id", None)
    if start is None:  # in the config of the decoder, where a model is put together from two
        start = getattr(model.config, "decoder_start_token_id", None)
    if start is None:
        start = decoder.bos_token_id
    config = transformers.GenerationConfig(
        do_sample=False, num_beams=1, max_new_tokens=tokens, min_new_tokens=tokens, eos_token_id=None, pad_token_id=0,
        decoder_start_token_id=start,
    )  # fmt: skip
    model.generation_config = config
    given = {name: torch.from_numpy(value) for name, value in inputs.items()}
    with torch.inference_mode():
        wanted = model.generate(**given, generation_config=config).numpy()
    wanted = wanted[:, -tokens:]  # Whisper leaves the token away that a text begins with
    with Composite(build, target=find_target(asked.target)) as composite:
        made = composite.generate(inputs, new_tokens=tokens)
    length = made.shape[1]
    same = made == wanted[:, :length]
    first = [int(np.flatnonzero(~row)[0]) if not row.all() else None for row in same]
    print(json.dumps({"prompts": len(made), "tokens": length, "equal": int(same.sum()), "ties": 0, "differs": first}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
