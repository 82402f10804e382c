"""One process of the benchmark: quantizes a model with winml or with onnxruntime's own tool.

python arms.py winml|same-work|onnxruntime MODEL DATA.npz METHOD OUTPUT
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

from winml.modelkit.core import values
from winml.modelkit.core.config import DataSection, QuantizeSection
from winml.modelkit.worker.memory import memory_of


class _Silent:
    """A caller that listens to nothing."""

    def __init__(self) -> None:
        self.stop = threading.Event()

    def tell(self, event: object) -> None:
        pass


def winml(model: str, data: str, method: str, output: str, *, compare: bool = True) -> None:
    from winml.modelkit.building.quantize.stage import run

    section = QuantizeSection(
        mode="static",
        activation_type="uint8",
        weight_type="int8",
        per_channel=True,
        calibration_method=method,
        calibration=DataSection(data),
    )
    args = {"model": model, "output": output, "section": values.to_json(section), "compare": compare}
    run(args, _Silent())


def onnxruntime(model: str, data: str, method: str, output: str) -> None:
    import onnxruntime as ort
    from onnxruntime import quantization as q

    from winml.modelkit.data.dataset import open_dataset
    from winml.modelkit.graph.inputs import InputSpec

    class Reader(q.CalibrationDataReader):
        def __init__(self) -> None:
            session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
            specs = [InputSpec(i.name, i.type, tuple(i.shape)) for i in session.get_inputs()]
            dataset = open_dataset(DataSection(data), specs, model_folder=Path(model).parent, labels=False)
            self._samples = iter(dataset)

        def get_next(self) -> dict[str, Any] | None:
            sample = next(self._samples, None)
            return None if sample is None else sample.inputs

    methods = {
        "minmax": q.CalibrationMethod.MinMax,
        "percentile": q.CalibrationMethod.Percentile,
        "entropy": q.CalibrationMethod.Entropy,
    }
    q.quantize_static(
        model,
        output,
        Reader(),
        activation_type=q.QuantType.QUInt8,
        weight_type=q.QuantType.QInt8,
        per_channel=True,
        calibrate_method=methods[method],
    )


if __name__ == "__main__":
    {"winml": winml, "same-work": partial(winml, compare=False), "onnxruntime": onnxruntime}[sys.argv[1]](*sys.argv[2:])
    # The system's own figure for a child begins with what its parent had when it forked.
    Path("peak.txt").write_text(str((memory_of() or {})["peak_bytes"]), encoding="utf-8")
