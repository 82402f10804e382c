"""A Llama with random weights and a tokenizer of bytes, for benchmarks of builds: `random_llama.py SIZE FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trained_decoder"))

SIZES = {
    "tiny": {"hidden": 32, "inner": 64, "heads": 2, "shared": 1, "layers": 2, "tokens": 512},
    "layers": {"hidden": 1024, "inner": 2816, "heads": 16, "shared": 8, "layers": 4, "tokens": 32000},
    "62M": {"hidden": 1024, "inner": 2816, "heads": 16, "shared": 4, "layers": 4, "tokens": 8192},
    "775M": {"hidden": 4096, "inner": 11008, "heads": 32, "shared": 8, "layers": 4, "tokens": 8192},
}
"""By how many weights they have, or what they are for. Few layers: int4 loses much in each when weights are random."""


def make_llama(size: str, folder: Path) -> int:
    """Write the model in float32 and return the bytes of its weights."""
    import torch
    import transformers
    from train import make_tokenizer

    sizes = SIZES[size]
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=sizes["hidden"],
        intermediate_size=sizes["inner"],
        num_attention_heads=sizes["heads"],
        num_key_value_heads=sizes["shared"],
        num_hidden_layers=sizes["layers"],
        vocab_size=sizes["tokens"],
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        initializer_range=0.02 * (1024 / sizes["hidden"]) ** 0.5,  # with 0.02 the noise of int4 grows with the width
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return sum(weight.numel() * weight.element_size() for weight in model.parameters())


if __name__ == "__main__":
    print(make_llama(sys.argv[1], Path(sys.argv[2])))
