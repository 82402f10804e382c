"""Models with the layers of published ones: the same widths, heads, inner sizes and positions, one or two of them.

Weights are random with a fixed seed, and the vocabulary is small: it decides the size of the head alone. Decoders have
a tokenizer of bytes, because onnxruntime-genai's builder loads one for some classes; prompts are made of tokens.

    python benchmarks/generation/real_layers.py FOLDER NAME
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trained_decoder"))

TOKENS = 2048
LENGTH = 1024
_COMMON = {"vocab_size": TOKENS, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "initializer_range": 0.05}
_LONG = {**_COMMON, "max_position_embeddings": LENGTH}


def _decoder(kind: str, **sizes: Any) -> Callable[[Any], Any]:
    def make(library: Any) -> Any:
        config = getattr(library, f"{kind}Config")(**{**_LONG, **sizes})
        name = f"{kind.removesuffix('Text')}{'LMHeadModel' if kind == 'GPT2' else 'ForCausalLM'}"
        return getattr(library, name)(config)

    return make


def _pair(kind: str, model: str, **sizes: Any) -> Callable[[Any], Any]:
    def make(library: Any) -> Any:
        return getattr(library, model)(getattr(library, f"{kind}Config")(**sizes))

    return make


def _sizes(hidden: int, inner: int, heads: int, kv_heads: int, layers: int, **more: Any) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "num_hidden_layers": layers,
        **more,
    }


def _bart(width: int, inner: int, heads: int, layers: int, **more: Any) -> dict[str, Any]:
    sides = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in (
        ("layers", layers), ("attention_heads", heads), ("ffn_dim", inner))}  # fmt: skip
    tokens = {"vocab_size": TOKENS, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "init_std": 0.05}
    return {**tokens, "d_model": width, **sides, "decoder_start_token_id": 2, "forced_eos_token_id": None, **more}


def _vit_gpt2(library: Any) -> Any:
    image = library.ViTConfig(num_hidden_layers=1, initializer_range=0.05)  # ViT-base: width 768, 12 heads
    text = library.GPT2Config(
        vocab_size=TOKENS, n_layer=2, bos_token_id=1, eos_token_id=2, pad_token_id=0, initializer_range=0.05,
        is_decoder=True, add_cross_attention=True,
    )  # fmt: skip
    config = library.VisionEncoderDecoderConfig.from_encoder_decoder_configs(image, text)
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 1, 0, 2
    return library.VisionEncoderDecoderModel(config)


DECODERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "llama": ("Llama-3.2-1B", _decoder("Llama", **_sizes(2048, 8192, 32, 8, 2, head_dim=64, rope_theta=500000.0))),
    "mistral": ("Mistral-7B", _decoder("Mistral", **_sizes(4096, 14336, 32, 8, 1, head_dim=128, sliding_window=None))),
    "qwen2": ("Qwen2.5-0.5B", _decoder("Qwen2", **_sizes(896, 4864, 14, 2, 2, rope_theta=1000000.0))),
    "qwen3": ("Qwen3-0.6B", _decoder("Qwen3", **_sizes(1024, 3072, 16, 8, 2, head_dim=128, rope_theta=1000000.0))),
    "phi3": ("Phi-3-mini", _decoder("Phi3", **_sizes(3072, 8192, 32, 32, 1, original_max_position_embeddings=LENGTH))),
    "gemma3_text": ("Gemma-3-1B", _decoder("Gemma3Text", **_sizes(1152, 6912, 4, 1, 2, head_dim=256))),
    "gpt2": ("GPT-2", _decoder("GPT2", n_embd=768, n_head=12, n_layer=2, n_positions=LENGTH)),
    "smollm2": ("SmolLM2-360M", _decoder("Llama", **_sizes(960, 2560, 15, 5, 2, rope_theta=100000.0))),
    "opt": ("OPT-125M", _decoder("OPT", ffn_dim=3072, word_embed_proj_dim=768, **_sizes(768, 3072, 12, 12, 2))),
}  # fmt: skip
PAIRS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "bart": ("BART-base", _pair("Bart", "BartForConditionalGeneration", **_bart(768, 3072, 12, 2))),
    "t5": ("T5-small", _pair(
        "T5", "T5ForConditionalGeneration", vocab_size=TOKENS, d_model=512, d_kv=64, d_ff=2048, num_layers=2,
        num_heads=8, decoder_start_token_id=0, initializer_factor=1.0)),
    "marian": ("opus-mt (Marian)", _pair(
        "Marian", "MarianMTModel", **_bart(512, 2048, 8, 2, max_position_embeddings=512))),
    "whisper": ("Whisper-base", _pair(
        "Whisper", "WhisperForConditionalGeneration", **_bart(512, 2048, 8, 2, begin_suppress_tokens=None))),
    "vision-encoder-decoder": ("ViT-GPT2", _vit_gpt2),
}  # fmt: skip
"""By the name of a family: the published model whose layers it has, and how it is made."""


def make_model(name: str, folder: Path) -> int:
    """Write the folder of a model, as its class saves it; the number of its weights."""
    import torch
    import transformers
    from train import make_tokenizer

    torch.manual_seed(0)
    model = (DECODERS | PAIRS)[name][1](transformers)
    model.generation_config.eos_token_id = None  # a text goes on to its last token
    model.save_pretrained(folder)
    if name in DECODERS:
        make_tokenizer().save_pretrained(folder)
    return sum(weight.numel() for weight in model.parameters())


if __name__ == "__main__":
    print(make_model(sys.argv[2], Path(sys.argv[1])))
