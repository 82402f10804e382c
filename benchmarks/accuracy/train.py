"""Small Hugging Face image classifiers, trained on MNIST on the spot and saved as model folders."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

EPOCHS = {"resnet": 1, "vit": 3}
BATCH = 128
SEED = 0


def _model(kind: str):
    from transformers import ResNetConfig, ResNetForImageClassification, ViTConfig, ViTForImageClassification

    if kind == "resnet":
        config = ResNetConfig(
            num_channels=1, embedding_size=16, hidden_sizes=[16, 32, 64], depths=[1, 1, 1], layer_type="basic",
            num_labels=10,
        )  # fmt: skip
        return ResNetForImageClassification(config)
    config = ViTConfig(
        image_size=28, patch_size=7, num_channels=1, hidden_size=64, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=128, num_labels=10,
    )  # fmt: skip
    return ViTForImageClassification(config)


def train(kind: str, images: np.ndarray, labels: np.ndarray, folder: Path) -> Path:
    """The folder of the trained model, with the processor that its images went through."""
    if (folder / "config.json").is_file():
        return folder
    import torch

    torch.manual_seed(SEED)
    model = _model(kind).train()
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    batches = EPOCHS[kind] * (len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=batches)
    for _ in range(EPOCHS[kind]):
        order = torch.randperm(len(x))
        for start in range(0, len(x) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            loss = model(pixel_values=x[chosen], labels=y[chosen]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    model.eval().save_pretrained(folder)
    processor = {"size": {"height": 28, "width": 28}, "image_mean": [0.5], "image_std": [0.5]}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor), encoding="utf-8")
    return folder
