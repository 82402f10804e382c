"""The stage, run in this process in a folder of its own, as a worker would."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from winml.modelkit.building.quantize.stage import run
from winml.modelkit.core import sections
from winml.modelkit.core.config import QuantizeSection


class Listener:
    """A caller that remembers what it was told."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.events: list[dict[str, Any]] = []

    def event(self, name: str, **values: Any) -> None:
        self.events.append({"event": name, **values})


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def quantize(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listener: Listener
) -> Callable[..., tuple[onnx.ModelProto, dict[str, Any]]]:
    """Quantizes a model in memory; gives the quantized one and the report."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def call(model: onnx.ModelProto, section: QuantizeSection, **more: Any) -> tuple[onnx.ModelProto, dict[str, Any]]:
        source, output = tmp_path / "model.onnx", tmp_path / "quantized.onnx"
        source.write_bytes(model.SerializeToString())
        args = {"model": str(source), "output": str(output), "section": sections.plain(section), **more}
        report = run(args, listener)  # type: ignore[arg-type]
        assert not list(work.iterdir())
        return onnx.load(output), report

    return call
