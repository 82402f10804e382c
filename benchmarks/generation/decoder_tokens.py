"""Tokens of a decoder built by winml against those of PyTorch's `generate`: `decoder_tokens.py SOURCE BUILD`.

Two prompts of different lengths, padded on the left, and the longer one alone; with a past, and without one: the whole
text in one run must find every token of PyTorch's the likeliest. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import torch
import transformers

from winml.modelkit.core.target import Target
from winml.modelkit.session.generation.generator import generate
from winml.modelkit.session.generation.ort_loop import OrtGenerator

TOKENS = 64
LENGTHS = (11, 6)


def ask_pytorch(model: Any, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    config = transformers.GenerationConfig(
        do_sample=False, num_beams=1, max_new_tokens=TOKENS, min_new_tokens=TOKENS, eos_token_id=None, pad_token_id=0
    )
    model.generation_config = config
    with torch.inference_mode():
        made = model.generate(
            torch.from_numpy(ids), attention_mask=torch.from_numpy(mask), generation_config=config
        ).numpy()
    found: np.ndarray = made[:, ids.shape[1] :]
    return found


def count_ties(model: Any, text: np.ndarray, made: np.ndarray, wanted: np.ndarray) -> int:
    """1 where the first different token is one that PyTorch rates alike, else 0."""
    places = np.flatnonzero(made != wanted)
    if not places.size:
        return 0
    whole = np.concatenate([text, wanted[: places[0]]])
    with torch.inference_mode():
        logits = model(input_ids=torch.from_numpy(whole[None])).logits[0, -1].numpy()
    gap = abs(float(logits[wanted[places[0]]] - logits[made[places[0]]]))
    return int(gap <= 1e-3 * float(np.abs(logits).max()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("build")
    asked = parser.parse_args()
    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForCausalLM.from_pretrained(asked.source, dtype=torch.float32).eval()
    rng = np.random.default_rng(0)
    width = max(LENGTHS)
    ids = rng.integers(5, model.config.vocab_size, (len(LENGTHS), width))
    mask = (np.arange(width)[None] >= width - np.array(LENGTHS)[:, None]).astype(np.int64)
    wanted = ask_pytorch(model, ids, mask)
    found: dict[str, Any] = {}
    with OrtGenerator(asked.build, target=Target("cpu", "cpu")) as generator:
        for name, rows in (("batch 1", slice(0, 1)), ("batch 2, padded", slice(0, 2))):
            made = generate(generator, ids[rows], mask[rows], new_tokens=TOKENS, ends=())
            texts = [ids[row][mask[row] > 0] for row in range(len(made))]
            ties = sum(count_ties(model, text, a, b) for text, a, b in zip(texts, made, wanted[rows], strict=True))
            found[name] = {"equal": int((made == wanted[rows]).sum()), "of": made.size, "ties": ties}
        whole = np.concatenate([ids[0], wanted[0]])
        again = generator.score(whole[None, :-1])[0, width - 1 :].argmax(axis=-1)
        found["without past"] = {"equal": int((again == wanted[0]).sum()), "of": TOKENS, "ties": 0}
    found["different tokens"] = len(set(wanted[0].tolist()))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
