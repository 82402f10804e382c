"""What `winml quantize --sensitivity` costs against running each of its variants once.

    python benchmarks/accuracy/cost.py -o WORK [--layers 100] [--samples 64] [--channels 32] [--size 16]

The model is a network of that many convolutions with random weights. "Running each variant once" is a process that
opens each variant, written to a file before, with ONNX Runtime alone and runs it over the samples. Memory of "one
variant" is the peak of a process that makes one with `quantize_static` of onnxruntime and runs it over samples; that
of a process that only opens and runs a finished one is there as well. Memory of the command is that of its largest
process, and of all together (the sum of `Pss`, asked five times a second). Peaks of processes are `VmHWM` of Linux:
`ru_maxrss` of a process begins with that of the one that started it. Writes
`benchmarks/results/sensitivity_cost.json`, a row for each size of the model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "sensitivity_cost.json"

PLAIN = """
import json, re, sys, time
import numpy as np
import onnxruntime as ort
models, data = json.loads(sys.argv[1]), sys.argv[2]
samples = np.load(data)["x"]
started = time.monotonic()
for model in models:
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    for sample in samples:
        session.run(None, {"x": sample[None]})
    del session
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(json.dumps([time.monotonic() - started, peak]))
"""

MAKE = """
import json, re, sys
import numpy as np
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
model, data, output = sys.argv[1:]
samples = np.load(data)["x"]

class Reader(CalibrationDataReader):
    def __init__(self):
        self.feeds = iter([{"x": sample[None]} for sample in samples[:16]])

    def get_next(self):
        return next(self.feeds, None)

quantize_static(model, output, Reader(), quant_format=QuantFormat.QDQ, nodes_to_quantize=["Conv_0"],
                activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
session = ort.InferenceSession(output, providers=["CPUExecutionProvider"])
for sample in samples:
    session.run(None, {"x": sample[None]})
print(json.dumps(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])))
"""

SENSITIVITY = """
import json, os, re, sys, threading, time
from pathlib import Path
import winml.modelkit as wk

peaks, together, done = {}, [0], threading.Event()

def watch():
    # Peaks of this process and of all that it started, until the work is done.
    while not done.wait(0.2):
        parents = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                status = (folder / "status").read_text()
            except OSError:
                continue
            found = re.search(r"VmHWM:\\s+(\\d+)", status)
            parent = int(re.search(r"PPid:\\s+(\\d+)", status)[1])
            parents[int(folder.name)] = (parent, int(found[1]) if found else 0)
        for pid, (_, peak) in parents.items():
            above = pid
            while above in parents and above != os.getpid():
                above = parents[above][0]
            if above == os.getpid():
                peaks[pid] = max(peak, peaks.get(pid, 0))
        now = 0
        for pid in parents.keys() & peaks.keys():
            try:
                now += int(re.search(r"Pss:\\s+(\\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text())[1])
            except (OSError, TypeError):
                continue
        together[0] = max(together[0], now)

threading.Thread(target=watch, daemon=True).start()
started = time.monotonic()
result = wk.sensitivity(sys.argv[1], calibration=sys.argv[2], samples=16, data=sys.argv[2], target="cpu",
                        precision="int8", section={"per_channel": False}, progress=False)
took = time.monotonic() - started
again = time.monotonic()
second = wk.sensitivity(sys.argv[1], calibration=sys.argv[2], samples=16, data=sys.argv[2], target="cpu",
                        precision="int8", section={"per_channel": False}, progress=False)
again = time.monotonic() - again
done.set()
peak = max(peaks.values())
states = [group.effect.state for group in result.groups]
counts = [len(states), states.count("measured"), result.samples, second.cached]
print(json.dumps([took, again, peak, together[0], *counts]))
"""


def make_model(layers: int, channels: int, size: int, path: Path) -> None:
    """Convolutions one after another; every second one adds what the one before the last gave."""
    import onnx

    sys.path.insert(0, str(HERE))
    from faults import _Net

    net = _Net(np.random.default_rng(0), [1, channels, size, size])
    value = "x"
    for _ in range(layers):
        value = net.conv(value, channels, channels)
    onnx.save(net.finish(value), path)


def write_variants(model: Path, data: Path, folder: Path) -> list[str]:
    """The variants as the command makes them, kept as files."""
    from winml.modelkit.accuracy.variants import make, plan

    class Context:
        stop = type("Event", (), {"is_set": staticmethod(lambda: False)})

        def tell(self, event: object) -> None:
            """Progress is of no interest here."""

    section = {
        "mode": "static", "activation_type": "uint8", "weight_type": "int8", "per_channel": False,
        "calibration": {"source": str(data), "limit": 16},
    }  # fmt: skip
    asked = {
        "quantize": {"model": str(model), "output": "unused.onnx", "section": section}, "grouping": "layer",
        "data": {"source": str(data), "limit": 1}, "samples": 1, "folder": str(folder),
    }  # fmt: skip
    planned = plan(asked, Context())  # type: ignore[arg-type]
    made = []
    for number, group in enumerate(planned.groups):
        names = [name for name, _ in group.nodes]
        made.append(make({"folder": str(folder), "nodes": names, "name": f"v{number}.onnx"}, None).path)
    return made


def run_json(code: str, *words: str, env: dict[str, str] | None = None) -> Any:
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, env=env)
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(work: Path, layers: int, samples: int, channels: int, size: int) -> dict[str, Any]:
    model, data, folder = work / "model.onnx", work / "data.npz", work / "variants"
    folder.mkdir(parents=True, exist_ok=True)
    make_model(layers, channels, size, model)
    rng = np.random.default_rng(1)
    np.savez(data, x=rng.normal(0, 1, (samples, channels, size, size)).astype(np.float32))
    variants = write_variants(model, data, folder)
    _, one_kb = run_json(PLAIN, json.dumps(variants[:1]), str(data))
    made_kb = run_json(MAKE, str(model), str(data), str(work / "one.onnx"))
    started = time.monotonic()
    plain_s, _ = run_json(PLAIN, json.dumps(variants), str(data))
    whole_plain_s = time.monotonic() - started
    with tempfile.TemporaryDirectory(dir=work) as cache:
        env = {**os.environ, "WINML_CACHE": cache}
        found = run_json(SENSITIVITY, str(model), str(data), env=env)
    took, again, peak_kb, together_kb, groups, measured, used, cached = found
    return {
        "channels": channels,
        "model_mib": round(model.stat().st_size / 2**20, 1),
        "layers": groups,
        "measured": measured,
        "samples": used,
        "sensitivity_s": round(took, 2),
        "second_run_s": round(again, 2),
        "second_run_from_cache": cached,
        "each_variant_once_s": round(plain_s, 2),
        "each_variant_once_with_process_s": round(whole_plain_s, 2),
        "time_ratio": round(took / plain_s, 2),
        "peak_mib": round(peak_kb / 1024, 1),
        "all_processes_mib": round(together_kb / 1024, 1),
        "one_variant_mib": round(made_kb / 1024, 1),
        "one_finished_variant_mib": round(one_kb / 1024, 1),
        "memory_ratio": round(peak_kb / made_kb, 2),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", required=True, type=Path)
    parser.add_argument("--layers", type=int, default=100)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--size", type=int, default=16)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    found = measure(given.output.absolute(), given.layers, given.samples, given.channels, given.size)
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    rows = [*(row for row in rows if row["model_mib"] != found["model_mib"]), found]
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
