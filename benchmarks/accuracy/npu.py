"""Models that quantization spoils on an NPU: what `winml debug` names, and what a build with a limit ends with.

    python benchmarks/accuracy/npu.py -o WORK [--models swin,yolos,detr] [--target qnn/npu] [--samples 2]

Tiny models with random weights (`tests/hf_zoo.py`), exported by `winml export`. Swin is also quantized to w8a16 by
onnxruntime's own tool, which is right on the CPU EP and wrong on the NPU. Each is then quantized with
`--min-agreement 0.99`. Inputs are random. Writes `benchmarks/results/npu_accuracy.json`, model by model, so that an
interrupted run keeps what it has.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "npu_accuracy.json"
sys.path.insert(0, str(HERE.parents[1] / "tests"))

PRECISIONS = {"swin": "w8a16", "yolos": "int8", "detr": "w8a16", "vit": "int8"}
LIMIT = 0.99


def export(name: str, work: Path) -> Path:
    """The model as ONNX."""
    import hf_zoo
    import winml.modelkit as wk

    output = work / f"{name}-export"
    if not output.exists():
        wk.export(hf_zoo.saved(name, work), output=output, progress=False)
    return next(output.glob("*.onnx"))


def quantize_plainly(model: Path, output: Path) -> None:
    """To w8a16 by onnxruntime's tool with its configuration for QNN, calibrated on random inputs."""
    import numpy as np
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize
    from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            rng = np.random.default_rng(0)
            shapes = {
                value.name: [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
                for value in onnx.load(model).graph.input
            }
            self.feeds = iter(
                [{name: rng.normal(size=s).astype(np.float32) for name, s in shapes.items()} for _ in range(4)]
            )

        def get_next(self) -> Any:
            return next(self.feeds, None)

    config = get_qnn_qdq_config(str(model), Reader(), activation_type=QuantType.QUInt16, weight_type=QuantType.QUInt8)
    quantize(str(model), str(output), config)


def agreement(model: Path, reference: Path, target: str, samples: int) -> float:
    """The least median cosine of an output."""
    import winml.modelkit as wk

    found = wk.evaluate(
        model, data="random", samples=samples, target=target, reference=reference, reference_target="cpu",
        progress=False,
    )  # fmt: skip
    return min(one.cosine.median for one in found.distance or () if one.cosine is not None)


def run_model(name: str, work: Path, target: str, samples: int) -> dict[str, Any]:
    import winml.modelkit as wk

    started, precision = time.monotonic(), PRECISIONS[name]
    reference = export(name, work)
    row: dict[str, Any] = {"model": name, "precision": precision, "target": target, "samples": samples}
    if precision == "w8a16":
        plain = work / f"{name}-ort.onnx"
        quantize_plainly(reference, plain)
        row["plain_on_cpu"] = agreement(plain, reference, "cpu", samples)
        row["plain_on_target"] = agreement(plain, reference, target, samples)
        named = wk.debug(plain, reference=reference, data="random", samples=samples, target=target, progress=False)
        row["debug"] = list(named.summary)
    try:
        mended = wk.quantize_within(
            reference, output=work / f"{name}-mended.onnx", data="random", min_agreement=LIMIT, calibration="random",
            samples=4, target=target, precision=precision, overwrite=True, progress=False,
        )  # fmt: skip
    except wk.CheckFailed as error:
        row["failed"] = error.message
    else:
        first, last = mended.attempts[0], next(one for one in reversed(mended.attempts) if one.answer == "within")
        row |= {
            "before": first.agreement, "after": mended.evaluation.distance and last.agreement,
            "layers": mended.layers, "raised": len(mended.raised), "kept": len(mended.kept),
            "mending": list(last.mending), "attempts": len(mended.attempts),
            "bytes_before": first.bytes, "bytes_after": last.bytes,
            "placed_before": first.placed, "placed_after": last.placed, "summary": list(mended.summary),
        }  # fmt: skip
    return {**row, "seconds": round(time.monotonic() - started, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", required=True, type=Path)
    parser.add_argument("--models", default="swin,yolos,detr")
    parser.add_argument("--target", default="qnn/npu")
    parser.add_argument("--samples", type=int, default=2)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    for name in given.models.split(","):
        row = run_model(name, given.output.absolute(), given.target, given.samples)
        rows = [*(one for one in rows if one["model"] != name), row]
        RESULTS.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()
