"""Tokens of a pair built by winml against those of PyTorch's `generate`: `pair_tokens.py SOURCE BUILD`."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import torch
import transformers

from winml.modelkit.core.target import Target
from winml.modelkit.session.composite import Composite

TOKENS = 64


def make_inputs(model: Any) -> dict[str, np.ndarray]:
    """One input of the kind that the encoder reads."""
    rng = np.random.default_rng(0)
    encoder = model.get_encoder()
    config, name = encoder.config, encoder.main_input_name
    if name == "pixel_values":
        size = config.image_size if isinstance(config.image_size, int) else config.image_size[0]
        return {name: rng.normal(size=(1, config.num_channels, size, size)).astype(np.float32)}
    if name == "input_features":
        return {name: rng.normal(size=(1, config.num_mel_bins, 2 * config.max_source_positions)).astype(np.float32)}
    ids = rng.integers(5, config.vocab_size - 5, (1, 12))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def main() -> int:
    source, build = sys.argv[1:3]
    transformers.logging.set_verbosity_error()
    architecture = transformers.AutoConfig.from_pretrained(source).architectures[0]
    model = getattr(transformers, architecture).from_pretrained(source).eval()
    inputs = make_inputs(model)
    decoder = model.config.get_text_config(decoder=True)
    limit = (
        getattr(decoder, "max_position_embeddings", None) or getattr(decoder, "max_target_positions", None) or TOKENS
    )
    tokens = min(TOKENS, limit - 2)
    start = getattr(model.generation_config, "decoder_start_token_id", None)
    config = transformers.GenerationConfig(
        do_sample=False, num_beams=1, max_new_tokens=tokens, min_new_tokens=tokens, eos_token_id=None, pad_token_id=0,
        decoder_start_token_id=start if start is not None else model.config.decoder_start_token_id,
    )  # fmt: skip
    model.generation_config = config
    given = {name: torch.from_numpy(value) for name, value in inputs.items()}
    with torch.inference_mode():
        wanted = model.generate(**given, generation_config=config).numpy()
    wanted = wanted[:, -tokens:]  # Whisper leaves the token away that a text begins with
    with Composite(build, target=Target("cpu", "cpu")) as composite:
        made = composite.generate(inputs, new_tokens=tokens)
    length = made.shape[1]
    equal = int((made == wanted[:, :length]).sum())
    print(json.dumps({"prompts": 1, "tokens": length, "equal": equal, "ties": 0}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
