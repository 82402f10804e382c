"""Models that an exporter made, with random weights, kept as files: a replay needs neither torch nor transformers."""

from __future__ import annotations

from pathlib import Path

import onnx

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.graph import files

FOLDER = Path(__file__).parent / "models"


def load_recorded(name: str) -> onnx.ModelProto:
    """The model of that name, built by `winml build -m FOLDER --target qnn/npu --calibration random`."""
    known = {path.stem: path for path in FOLDER.glob("*.onnx")}
    if name not in known:
        raise RequestError(f"there is no recorded model `{name}`", hint=did_you_mean(name, known))
    return files.load(known[name])
