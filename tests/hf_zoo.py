"""Tiny models of Hugging Face families with random weights, saved as folders; imports transformers when one is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""For processes that import torch: models this small take more time with more threads, which wait for each other."""

TEXT = {
    "vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
    "max_position_embeddings": 64,
}  # fmt: skip
VISION = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
    "image_size": 32, "patch_size": 8, "num_labels": 5,
}  # fmt: skip
SEQ2SEQ = {
    "vocab_size": 120, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": None,
}  # fmt: skip


def _model(config: str, model: str, **values: Any) -> Any:
    import transformers

    return getattr(transformers, model)(getattr(transformers, config)(**values))


def resnet() -> Any:
    return _model(
        "ResNetConfig", "ResNetForImageClassification",
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=5,
    )  # fmt: skip


def convnext() -> Any:
    return _model(
        "ConvNextConfig", "ConvNextForImageClassification",
        hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, image_size=32, num_labels=5,
    )  # fmt: skip


def mobilevit() -> Any:
    return _model(
        "MobileViTConfig", "MobileViTForImageClassification",
        image_size=32, patch_size=2, hidden_sizes=[16, 16, 16], neck_hidden_sizes=[8, 8, 8, 16, 16, 16, 16],
        num_attention_heads=2, num_labels=5,
    )  # fmt: skip


def vit() -> Any:
    return _model("ViTConfig", "ViTForImageClassification", **VISION)


def dinov2() -> Any:
    return _model("Dinov2Config", "Dinov2ForImageClassification", **VISION)


def swin() -> Any:
    return _model(
        "SwinConfig", "SwinForImageClassification",
        image_size=32, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4, num_labels=5,
    )  # fmt: skip


def segformer() -> Any:
    return _model(
        "SegformerConfig", "SegformerForSemanticSegmentation",
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2],
        num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16, num_labels=5,
    )  # fmt: skip


def detr() -> Any:
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )
    return _model(
        "DetrConfig", "DetrForObjectDetection", backbone_config=backbone, use_timm_backbone=False, backbone=None,
        use_pretrained_backbone=False, num_queries=6, d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, num_labels=5,
    )  # fmt: skip


def yolos() -> Any:
    return _model(
        "YolosConfig", "YolosForObjectDetection", **{**VISION, "image_size": [32, 32]}, num_detection_tokens=4
    )


def bert() -> Any:
    return _model("BertConfig", "BertForSequenceClassification", **TEXT, num_labels=3)


def distilbert() -> Any:
    return _model(
        "DistilBertConfig", "DistilBertForSequenceClassification",
        vocab_size=120, dim=32, n_layers=2, n_heads=2, hidden_dim=48, max_position_embeddings=64, num_labels=3,
    )  # fmt: skip


def roberta() -> Any:
    return _model("RobertaConfig", "RobertaForTokenClassification", **TEXT, pad_token_id=1, num_labels=3)


def minilm() -> Any:
    return _model("BertConfig", "BertModel", **TEXT)


def clip() -> Any:
    text = {**TEXT, "eos_token_id": 119, "bos_token_id": 118}
    vision = {name: value for name, value in VISION.items() if name != "num_labels"}
    return _model("CLIPConfig", "CLIPModel", text_config=text, vision_config=vision, projection_dim=16)


def wav2vec2() -> Any:
    return _model(
        "Wav2Vec2Config", "Wav2Vec2ForCTC",
        vocab_size=30, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
        conv_dim=[8, 8], conv_stride=[5, 4], conv_kernel=[10, 4], num_feat_extract_layers=2,
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2,
    )  # fmt: skip


def gpt2() -> Any:
    return _model(
        "GPT2Config", "GPT2LMHeadModel",
        vocab_size=120, n_positions=64, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=2,
    )  # fmt: skip


def qwen2() -> Any:
    return _model("Qwen2Config", "Qwen2ForCausalLM", **TEXT, num_key_value_heads=1)


def bart() -> Any:
    return _model("BartConfig", "BartForConditionalGeneration", **SEQ2SEQ)


def marian() -> Any:
    return _model("MarianConfig", "MarianMTModel", **SEQ2SEQ)


def t5() -> Any:
    return _model(
        "T5Config", "T5ForConditionalGeneration",
        vocab_size=120, d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2, decoder_start_token_id=0,
    )  # fmt: skip


def whisper() -> Any:
    # Its `generate` takes the end off an answer, so that one that ends would look different.
    values = {name: value for name, value in SEQ2SEQ.items() if name != "max_position_embeddings"} | {
        "eos_token_id": 119
    }
    return _model(
        "WhisperConfig", "WhisperForConditionalGeneration",
        **values, num_mel_bins=8, max_source_positions=16, max_target_positions=64,
    )  # fmt: skip


def vit_gpt2() -> Any:
    import transformers

    encoder = transformers.ViTConfig(**VISION)
    decoder = transformers.GPT2Config(
        vocab_size=120,
        n_positions=64,
        n_embd=32,
        n_layer=2,
        n_head=2,
        add_cross_attention=True,
        is_decoder=True,
        bos_token_id=0,
        eos_token_id=2,
    )
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 0, 1, 2
    return transformers.VisionEncoderDecoderModel(config)


def donut() -> Any:
    """An encoder that merges patches, with the decoder of BART."""
    import transformers

    encoder = transformers.DonutSwinConfig(
        image_size=[32, 64], patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4
    )
    decoder = transformers.MBartConfig(**SEQ2SEQ, is_decoder=True, add_cross_attention=True)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 0, 1, 2
    return transformers.VisionEncoderDecoderModel(config)


def llama() -> Any:
    return _model("LlamaConfig", "LlamaForCausalLM", **TEXT, num_key_value_heads=1)


def mistral() -> Any:
    return _model("MistralConfig", "MistralForCausalLM", **TEXT, num_key_value_heads=1, head_dim=16, sliding_window=8)


def qwen3() -> Any:
    return _model("Qwen3Config", "Qwen3ForCausalLM", **TEXT, num_key_value_heads=1, head_dim=16)


def efficientnet() -> Any:
    import torch

    model = _model(
        "EfficientNetConfig", "EfficientNetForImageClassification",
        image_size=32, width_coefficient=0.5, depth_coefficient=1.0, hidden_dim=640, num_labels=5, kernel_sizes=[3, 5],
        in_channels=[32, 16], out_channels=[16, 32], strides=[1, 2], num_block_repeats=[1, 2], expand_ratios=[1, 4],
        depthwise_padding=[],
    )  # fmt: skip
    for module in model.modules():
        # As drawn for training, they divide by fifty, and nothing is left in the end.
        if isinstance(module, torch.nn.BatchNorm2d):
            module.reset_parameters()
    return model


def swinv2() -> Any:
    return _model(
        "Swinv2Config", "Swinv2ForImageClassification",
        image_size=32, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4, num_labels=5,
    )  # fmt: skip


FAMILIES: dict[str, Callable[[], Any]] = {
    "resnet": resnet, "convnext": convnext, "mobilevit": mobilevit, "vit": vit, "dinov2": dinov2, "swin": swin,
    "segformer": segformer, "detr": detr, "yolos": yolos, "bert": bert, "distilbert": distilbert, "roberta": roberta,
    "minilm": minilm, "clip": clip, "wav2vec2": wav2vec2, "gpt2": gpt2, "qwen2": qwen2, "bart": bart,
    "marian": marian, "t5": t5, "whisper": whisper,
}  # fmt: skip

ON_DEMAND: dict[str, Callable[[], Any]] = {
    "vit_gpt2": vit_gpt2, "donut": donut, "llama": llama, "mistral": mistral, "qwen3": qwen3,
    "efficientnet": efficientnet, "swinv2": swinv2,
}  # fmt: skip
"""Families that only some tests need."""

GENERATING = ("gpt2", "qwen2", "bart", "marian", "t5", "whisper", "vit_gpt2")
GAINS = {"mobilevit": 3.5, "efficientnet": 1.5, **dict.fromkeys(GENERATING, 1.5)}
"""How much larger than usual weights are: so that outputs do not vanish, or words differ from one another."""
ANSWER = "greedy.npz"
"""Beside a model that generates: inputs, and the words that PyTorch answers with."""


def drawn(model: Any, gain: float = 1.0) -> Any:
    """The model with other weights: as drawn for training, outputs hardly depend on inputs."""
    import torch

    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(0, gain * weight[0].numel() ** -0.5)
    return model


def saved(name: str, folder: Path, *, seed: int = 0) -> Path:
    """The folder of a family's model, as `save_pretrained` writes it."""
    import torch

    torch.manual_seed(seed)
    make = {**FAMILIES, **ON_DEMAND}[name]
    model = drawn(make().eval(), GAINS.get(name, 1.0))
    model.save_pretrained(folder / name)
    if name in GENERATING:
        # Loaded again: tables that can be computed, as positions of Marian, are not saved.
        _save_answer(name, type(model).from_pretrained(folder / name).eval(), folder / name)
    return folder / name


def _save_answer(name: str, model: Any, folder: Path) -> None:
    """What the model says to two inputs of which one is padded, on the side that its kind is padded on."""
    import numpy as np
    import torch

    rng = np.random.default_rng(5)
    ids = rng.integers(3, 119, (2, 7))
    mask = np.ones_like(ids)
    mask[0, :2] = 0 if name in ("gpt2", "qwen2") else 1
    mask[1, -2:] = 0 if name in ("bart", "marian", "t5") else 1
    inputs = {"input_ids": ids, "attention_mask": mask}
    if name == "vit_gpt2":
        inputs = {"pixel_values": rng.normal(size=(2, 3, 32, 32)).astype(np.float32)}
    elif name == "whisper":
        inputs = {"input_features": rng.normal(size=(2, 8, 32)).astype(np.float32)}
    tensors = {key: torch.from_numpy(value) for key, value in inputs.items()}
    with torch.no_grad():
        words = model.generate(**tensors, max_new_tokens=12, do_sample=False, num_beams=1).numpy()
    # A decoder repeats its input, a pair its first word, Whisper nothing.
    skipped = ids.shape[1] if name in ("gpt2", "qwen2") else 0 if name == "whisper" else 1
    np.savez(folder / ANSWER, words=words[:, skipped:], **inputs)


def main(folder: Path, names: list[str]) -> None:
    for name in names:
        saved(name, folder)


if __name__ == "__main__":
    import sys

    main(Path(sys.argv[1]), sys.argv[2:])
