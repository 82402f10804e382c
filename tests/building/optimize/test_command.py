"""`winml optimize` where a pass makes what it does not declare."""

from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit.building.optimize import command
from winml.modelkit.building.optimize.command import OptimizeRequest, optimize
from winml.modelkit.core.config import OptimizeSection
from winml.modelkit.core.events import ignore


def test_a_target_gets_no_operator_it_does_not_take_from_the_cache_either(
    zoo: Path, tmp_path: Path, no_logins: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = OptimizeSection(passes=("conv_activation_fusion",))
    monkeypatch.setattr(command, "resolve", lambda **_: section)  # as if nothing were known of what the pass makes

    def run(name: str, target: str) -> tuple[str, int | None, str]:
        request = OptimizeRequest(str(zoo / "conv.onnx"), str(tmp_path / name), target=target)
        result = optimize(request, ignore)
        return result.cache, result.report.ops_after.get("com.microsoft:FusedConv"), result.report.passes[0].status

    assert run("cpu.onnx", "cpu") == ("miss", 3, "changed")
    assert run("npu.onnx", "qnn/npu") == ("miss", None, "left out")
    assert run("again.onnx", "qnn/npu") == ("hit", None, "left out")
    assert run("cpu2.onnx", "cpu") == ("hit", 3, "changed")
