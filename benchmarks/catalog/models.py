"""The models of the catalog at their real dimensions, with random weights: there is no hub where this runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "resnet-18": (
        "ResNetConfig",
        "ResNetForImageClassification",
        {"depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic", "num_labels": 1000},
    ),
    "resnet-50": ("ResNetConfig", "ResNetForImageClassification", {"num_labels": 1000}),
    "convnext-tiny-224": ("ConvNextConfig", "ConvNextForImageClassification", {"num_labels": 1000}),
    "mobilevit-small": ("MobileViTConfig", "MobileViTForImageClassification", {"num_labels": 1000}),
    "vit-base-patch16-224": ("ViTConfig", "ViTForImageClassification", {"num_labels": 1000}),
    "dinov2-small": (
        "Dinov2Config",
        "Dinov2Model",
        {"hidden_size": 384, "num_attention_heads": 6, "image_size": 518, "patch_size": 14},
    ),
    "swin-tiny-patch4-window7-224": ("SwinConfig", "SwinForImageClassification", {"num_labels": 1000}),
    "segformer-b0-ade-512": (
        "SegformerConfig",
        "SegformerForSemanticSegmentation",
        {"num_labels": 150, "image_size": 512},
    ),
    "bert-base-uncased": ("BertConfig", "BertForMaskedLM", {}),
    "bge-small-en-v1.5": (
        "BertConfig",
        "BertModel",
        {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536},
    ),
    "distilbert-sst2": ("DistilBertConfig", "DistilBertForSequenceClassification", {"num_labels": 2}),
    "roberta-base-ner": (
        "RobertaConfig",
        "RobertaForTokenClassification",
        {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "num_labels": 9},
    ),
    "all-MiniLM-L6-v2": (
        "BertConfig",
        "BertModel",
        {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    ),
    "yolos-tiny": (
        "YolosConfig",
        "YolosForObjectDetection",
        {
            "hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768, "image_size": [512, 512],
            "num_labels": 91,
        },
    ),
}  # fmt: skip
"""By name: class of the config, class of the model, what differs from the config's defaults."""


def saved(name: str, folder: Path) -> Path:
    """The folder of a model, as `save_pretrained` writes it."""
    import torch
    import transformers

    config, model, values = MODELS[name]
    torch.manual_seed(0)
    made = getattr(transformers, model)(getattr(transformers, config)(**values)).eval()
    made.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    import sys

    saved(sys.argv[1], Path(sys.argv[2]))
