"""A pass that crashes its process is skipped, and the others run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

import model_zoo
import pass_zoo
from winml.modelkit.building.events import (
    Calibrating,
    LeavingNodes,
    OptimizedOutputs,
    PassStarted,
    QuantizedOutputs,
    StageEvent,
)
from winml.modelkit.building.optimize import crashes
from winml.modelkit.building.optimize.resolve import resolve
from winml.modelkit.building.optimize.result import Crashes, OptimizeReport
from winml.modelkit.building.optimize.stage import run
from winml.modelkit.core.errors import WorkerCrashed
from winml.modelkit.core.values import read, to_json
from winml.modelkit.worker.client import Worker

SIGFPE = -8
SIGKILL = -9
REASON = "its process crashed with SIGFPE"
DIVIDED = "its process crashed with STATUS_INTEGER_DIVIDE_BY_ZERO (0xC0000094)" if sys.platform == "win32" else REASON
"""What a process that really divided is told to have ended with."""


def _args(model: onnx.ModelProto, folder: Path, **options: Any) -> dict[str, Any]:
    section = to_json(resolve(target=None, **options))
    return {
        "model": str(model_zoo.saved(model, folder / "in.onnx")),
        "output": str(folder / "out.onnx"),
        "section": section,
    }


def _left_out(report: OptimizeReport) -> dict[str, str]:
    return {row.name: row.note for row in report.passes if row.status == "left out"}


def _folds_and_fuses() -> onnx.ModelProto:
    """Something whose folding ends the process, beside something to fuse."""
    model = pass_zoo.graph(
        "(float[1,2,4,4] x, int32[1] i) => (float[1,2,4,4] y, int32[1] j) { c = Conv(x, w, b)  "
        "y = BatchNormalization(c, s, b, m, v)  a = Div(lowest, minus)  j = Add(a, i) }",
        w=(2, 2, 1, 1), b=(2,), s=(2,), m=(2,), v=pass_zoo.f32(1.0, 2.0),
    )  # fmt: skip
    for name, value in (("lowest", -(2**31)), ("minus", -1)):
        model.graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.INT32, [1], [value]))
    return model


def test_a_pass_that_crashes_is_left_out_with_its_reason_and_the_rest_goes_on(tmp_path: Path) -> None:
    args = _args(_folds_and_fuses(), tmp_path, level="none", enable=("constant_folding", "conv_bn_fusion"))
    report = crashes.ask(
        OptimizeReport,
        Worker,
        "stages.optimize",
        args,
        timeout_s=60,
        on_event=lambda event: None,
        what="x",
    )
    assert _left_out(report) == {"constant_folding": DIVIDED}
    assert [row.name for row in report.passes if row.changed] == ["conv_bn_fusion"]
    assert list(report.warnings) == [
        f"skipped constant_folding: {DIVIDED}",
        f"outputs were not compared: running the unmodified model: {DIVIDED}",
    ]
    assert {node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node} == {"Conv", "Div", "Add"}


def _started(name: str) -> PassStarted:
    return PassStarted(name=name, done=0, total=2)


class CrashingWorker:
    """Crashes at the events it is given, one per call, then answers with what it was told of crashes."""

    def __init__(self, script: list[StageEvent], returncode: int = SIGFPE) -> None:
        self.script, self.returncode = script, returncode

    def __enter__(self) -> CrashingWorker:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, form: Any, op: str, args: dict[str, Any], *, on_event: Any, **_: Any) -> Any:
        if not self.script:
            return args
        on_event(self.script.pop(0))
        raise WorkerCrashed("the process died", details={"returncode": self.returncode})


def _ask(*script: StageEvent, returncode: int = SIGFPE) -> Any:
    worker = CrashingWorker(list(script), returncode)
    return crashes.ask(
        dict[str, Any],
        lambda: worker,  # type: ignore[arg-type,return-value]
        "stages.optimize", {"model": "m"}, timeout_s=None, on_event=lambda event: None, what="x",
    )  # fmt: skip


def test_every_crash_is_told_to_the_next_process() -> None:
    told = _ask(OptimizedOutputs(of="source"), _started("one"), _started("two"), OptimizedOutputs(of="result"))
    expected = {"passes": {"one": REASON, "two": REASON}, "source": REASON, "careful": True}
    assert told == {"model": "m", "crashes": expected}


@pytest.mark.parametrize("event", [QuantizedOutputs(), LeavingNodes(reason="it fails")])
def test_a_crash_of_the_quantizers_comparison_is_told_as_well(event: StageEvent) -> None:
    assert _ask(event)["crashes"]["source"] == REASON


@pytest.mark.parametrize(
    "script",
    [
        [_started("one")] * 2,
        [OptimizedOutputs(of="source")] * 2,
        [OptimizedOutputs(of="result")] * 2,
        [OptimizedOutputs(of="prepared")],
        [Calibrating(done=0, total=2)],
    ],
    ids=str,
)
def test_a_crash_that_nothing_can_be_left_out_for_is_an_error(script: list[StageEvent]) -> None:
    with pytest.raises(WorkerCrashed):
        _ask(*script)


def test_a_process_that_was_killed_is_not_started_again() -> None:
    with pytest.raises(WorkerCrashed):
        _ask(_started("one"), returncode=SIGKILL)


def test_after_three_crashes_of_a_library_its_other_passes_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("constant_folding", "matmul_add_fusion", "gelu_fusion")
    passes = ("conv_bn_fusion", "gelu_singlegelu", *names)
    args = _args(pass_zoo.FIRES["conv_bn_fusion"], tmp_path, level="none", enable=passes)
    report = run({**args, "crashes": {"passes": dict.fromkeys(names, REASON)}}, events)
    reason = "constant_folding, matmul_add_fusion, gelu_fusion, which the same library runs, crashed"
    assert _left_out(report) == {**dict.fromkeys(names, REASON), "conv_bn_fusion": reason}


def test_after_a_crash_of_the_result_every_pass_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    args = _args(pass_zoo.FIRES["conv_bn_fusion"], tmp_path, level="none", enable=("conv_bn_fusion",))
    report = run({**args, "crashes": {"careful": True}}, events)
    assert report.passes[0].changed
    assert report.verification.status == "passed"


def test_crashes_are_equal_after_a_journey_as_json() -> None:
    told = _ask(_started("one"))["crashes"]
    assert read(Crashes, told) == Crashes({"one": REASON})
