"""Tiny models with random weights for `run.py`: those of the tests, and some that are wider.

The wide ones have weights enough to show that a file becomes smaller.

    python benchmarks/recipes/models.py FOLDER NAME ...
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import hf_zoo
import support_zoo


def convnext_wide() -> Any:
    return hf_zoo._model(
        "ConvNextConfig", "ConvNextForImageClassification",
        hidden_sizes=[64, 128], depths=[1, 1], num_stages=2, image_size=32, num_labels=5,
    )  # fmt: skip


def mobilevit_wide() -> Any:
    """Its normalizations have seen images: without that, outputs vanish whatever the weights are."""
    import torch

    model = hf_zoo.drawn(hf_zoo._model(
        "MobileViTConfig", "MobileViTForImageClassification",
        image_size=32, patch_size=2, hidden_sizes=[96, 96, 96], neck_hidden_sizes=[16, 32, 64, 96, 96, 96, 192],
        num_attention_heads=2, num_labels=5,
    ))  # fmt: skip
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.momentum = 1.0
    with torch.no_grad():
        model.train()(2 * torch.rand(32, 3, 32, 32) - 1)
    return model


def swin_wide() -> Any:
    return hf_zoo._model(
        "SwinConfig", "SwinForImageClassification",
        image_size=32, patch_size=2, embed_dim=64, depths=[1, 1], num_heads=[2, 2], window_size=4, num_labels=5,
    )  # fmt: skip


def segformer_wide() -> Any:
    return hf_zoo._model(
        "SegformerConfig", "SegformerForSemanticSegmentation",
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[64, 128], patch_sizes=[7, 3],
        strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=64, num_labels=5,
        image_size=64,
    )  # fmt: skip


def detr_wide() -> Any:
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 64], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )
    return hf_zoo._model(
        "DetrConfig", "DetrForObjectDetection", backbone_config=backbone, use_timm_backbone=False, backbone=None,
        use_pretrained_backbone=False, num_queries=6, d_model=64, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=128, decoder_ffn_dim=128, num_labels=5,
    )  # fmt: skip


WIDE = {
    "convnext_wide": convnext_wide, "mobilevit_wide": mobilevit_wide, "swin_wide": swin_wide,
    "segformer_wide": segformer_wide, "detr_wide": detr_wide,
}  # fmt: skip

if __name__ == "__main__":
    hf_zoo.FAMILIES.update(support_zoo.MODELS | WIDE)
    hf_zoo.main(Path(sys.argv[1]), sys.argv[2:])
