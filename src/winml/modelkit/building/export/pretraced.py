"""A small model traced once, so that the processes forked afterwards find what the first trace of a process makes.

Half of the time of a first trace goes into modules that torch and the exporter import when they need them, their
tables of operators and the caches of sympy; none of it depends on the model.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn
from tqdm import tqdm
from transformers import BertConfig, BertForMaskedLM

import winml.modelkit.building.export.preloaded  # noqa: F401
from winml.modelkit.building.export.loading import library


class _Trial(nn.Module):
    """What most models have: embeddings, attention with a mask, an image that a convolution reads."""

    def __init__(self) -> None:
        super().__init__()
        sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
        self.text = BertForMaskedLM(BertConfig(vocab_size=32, max_position_embeddings=32, **sizes))
        self.config = self.text.config
        self.image = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, pixel_values: Tensor) -> dict[str, Tensor]:
        seen = self.image(pixel_values).flatten(2).transpose(1, 2)
        joined = torch.cat([seen.mean(-1), nn.functional.interpolate(pixel_values, scale_factor=0.5).mean((1, 2))], -1)
        words = self.text(input_ids=input_ids, attention_mask=attention_mask).logits
        return {"logits": words, "image": joined.softmax(-1)}


def _trace() -> None:
    from torch.export import Dim
    from transformers.exporters import OnnxConfig, OnnxExporter

    inputs = {
        "input_ids": torch.ones(2, 8, dtype=torch.int64),
        "attention_mask": torch.ones(2, 8, dtype=torch.int64),
        "pixel_values": torch.ones(2, 3, 16, 16),
    }
    opened = {"input_ids": 2, "attention_mask": 2, "pixel_values": 1}
    shapes = {name: dict.fromkeys(range(count), Dim.DYNAMIC) for name, count in opened.items()}
    with (
        torch.no_grad(),
        tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="trial-", ignore_cleanup_errors=True) as folder,
    ):
        program = OnnxExporter().export(_Trial().eval(), inputs, config=OnnxConfig(dynamic_shapes=shapes))
        program.save(str(Path(folder) / "trial.onnx"), external_data=True)


def _run() -> None:
    """Trace; one that fails leaves less to find, and what it failed at is said by the export that needs it."""
    library()
    state, interval = torch.random.get_rng_state(), tqdm.monitor_interval
    tqdm.monitor_interval = 0  # a bar of progress starts a thread otherwise, and a process with threads does not fork
    with warnings.catch_warnings(), Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            failed = None
            try:
                _trace()
            except Exception as error:  # noqa: BLE001 - an exporter raises whatever it raises
                failed = f"{type(error).__name__}: {error}"
    torch.random.set_rng_state(state)
    tqdm.monitor_interval = interval
    if failed is not None:
        sys.stderr.write(f"the trial trace of the warm worker: {failed}\n")
    # Collecting garbage writes to every object that it looks at; those of before the fork stay shared.
    gc.collect()
    gc.freeze()


_run()
