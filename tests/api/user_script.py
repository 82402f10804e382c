"""What a user writes, with the types that a type checker sees; `make check` runs mypy --strict over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import onnx

import winml.modelkit as wk


def measure(model: Path, folder: Path) -> float:
    """Every function with arguments of every form."""
    events: list[wk.Event] = []
    images = np.zeros((8, 1, 48, 48), np.float32)
    built = wk.build(
        onnx.load(model), target="cpu", precision="int8", calibration={"image": images}, on_event=events.append
    )
    assert_type(built, wk.BuildResult)
    assert_type(wk.build_from_config(folder / "build_config.json", model=str(model)), wk.BuildResult)
    speed = wk.perf(built.folder, dims={"batch": 1}, shapes={"x": (1, 2)}, inputs={"image": images[:1]}, progress=False)
    assert_type(speed, wk.PerfResult)
    assert_type(speed.latency_ms.p50, float)
    assert_type(speed.target, wk.Target)
    verdict = wk.compare(model, built.folder, onnx.load(model), target=["cpu"], max_seconds=5)
    assert_type(verdict, wk.CompareResult)
    assert_type(verdict.candidates[0].speedup, float | None)
    accuracy = wk.evaluate(model, data=[{"image": images[0], "label": 1}], task="image-classification", judge="value")
    assert_type(accuracy, wk.EvalResult)
    assert_type(wk.analyze(model, ep_options={"soc_model": 60}), wk.AnalyzeResult)
    assert_type(wk.optimize(model, output=folder / "a.onnx", enable="gelu_fusion"), wk.OptimizeResult)
    assert_type(wk.quantize(model, output="b.onnx", calibration="random"), wk.QuantizeResult)
    assert_type(wk.compile([model, onnx.load(model)], output_dir=folder), wk.CompileResult)
    assert_type(wk.export("org/name", output=folder), wk.ExportResult)
    assert_type(wk.autoconfig(model, output=folder, objective="size"), wk.SearchResult)
    assert_type(wk.matrix([model], output=folder, target="cpu"), wk.RunResult)
    assert_type(wk.trace_diff(speed, folder / "perf_op_trace.json"), wk.TraceDiffResult)
    assert_type(wk.report(folder, output=folder / "report.html"), wk.ReportResult)
    assert_type(wk.run(model, inputs={"image": images[:1]}, task="image-classification"), wk.PredictionResult)
    with wk.serve(model, port=0) as ready:
        assert_type(ready, wk.ServeReady)
    assert_type(wk.sys(), wk.SysResult)
    return speed.latency_ms.p50


def show(result: wk.CommandResult) -> dict[str, Any]:
    """What every result has."""
    assert_type(str(result), str)
    return result.to_json()


def run(model: Path) -> bool:
    """A session, and errors."""
    try:
        found = wk.inspect(model)
        assert isinstance(found, wk.Inspection)
        with wk.Session(model, target="qnn/npu", dims={"batch": 1}) as session:
            outputs = session.run({"image": np.zeros((1, 1, 48, 48), np.float32)})
            return bool(outputs["logits"].any()) and session.placement.fallback
    except wk.CheckFailed as error:
        assert_type(error.hint, str | None)
        return error.exit_code == wk.errors.CheckFailed.exit_code
    except wk.ModelkitError as error:
        return error.code == "bug"


def misspell() -> None:
    """Names and words that are not there; mypy says so, or the comments would be unused."""
    wk.prf("model.onnx")  # type: ignore[attr-defined]
    wk.perf("model.onnx", iteration=5)  # type: ignore[call-arg]
    wk.perf("model.onnx", op_tracing="basics")  # type: ignore[arg-type]
    wk.optimize("model.onnx")  # type: ignore[call-arg]
