"""The stage, run in this process in a folder of its own, as a worker would."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from winml.modelkit.building.quantize.result import QuantizeReport
from winml.modelkit.building.quantize.stage import run
from winml.modelkit.core import values
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.events import Event


class Listener:
    """A caller that remembers what it was told."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.events: list[Event] = []

    def tell(self, event: Event) -> None:
        self.events.append(event)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def quantize(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listener: Listener
) -> Callable[..., tuple[onnx.ModelProto, QuantizeReport]]:
    """Quantizes a model in memory; gives the quantized one and the report."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def call(model: onnx.ModelProto, section: QuantizeSection, **more: Any) -> tuple[onnx.ModelProto, QuantizeReport]:
        source, output = tmp_path / "model.onnx", tmp_path / "quantized.onnx"
        source.write_bytes(model.SerializeToString())
        args = {"model": str(source), "output": str(output), "section": values.to_json(section), **more}
        report = run(args, listener)  # type: ignore[arg-type]
        assert not list(work.iterdir())
        return onnx.load(output), report

    return call
