"""What an export costs against `torch.onnx.export` alone, as ratios of processor time and of peak memory.

    python benchmarks/export/run.py [--rounds 1] [--only NAME ...] [--json FILE]

The plain arm is a script that loads the same folder and calls `torch.onnx.export(dynamo=True)` on the same inputs, and
checks nothing. The other is an export with an empty cache, which also compares the result with a fresh PyTorch model.
Cold: both are fresh processes. Warm: the plain arm without its imports, and an export by a worker that has exported
another model before. Weights are random; `tiny` models have two layers, the others real dimensions.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record

_TEXT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 99}
_IMAGE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "image_size": 32,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert, tiny": ("BertForSequenceClassification", _TEXT),
    "vit, tiny": ("ViTForImageClassification", {**_IMAGE, "patch_size": 8}),
    "resnet, tiny": ("ResNetForImageClassification", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}),
    "distilbert, tiny": (
        "DistilBertForSequenceClassification",
        {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "vocab_size": 99},
    ),
    "MiniLM-L6, real dimensions": (
        "BertModel",
        {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    ),
    "resnet-50, real dimensions": ("ResNetForImageClassification", {}),
}
MAKE = """
import json, sys, torch, transformers
torch.manual_seed(0)
folder, name, settings = sys.argv[1:]
cls = getattr(transformers, name)
cls(cls.config_class(**json.loads(settings))).save_pretrained(folder)
"""
PLAIN = """
import json, sys, time, numpy, torch, torch.onnx, torch.export, transformers
import transformers.modeling_utils
folder, name, inputs, axes, output = sys.argv[1:]
with numpy.load(inputs) as stored:
    sample = {key: torch.from_numpy(stored[key]) for key in stored.files}
shapes = {key: {int(place): torch.export.Dim.DYNAMIC for place in places} for key, places in json.loads(axes).items()}
started = time.process_time()
model = getattr(transformers, name).from_pretrained(folder, attn_implementation="eager").eval()
with torch.no_grad():
    torch.onnx.export(
        model, (), output, kwargs=sample, dynamo=True, dynamic_shapes=shapes, opset_version=20, external_data=True
    )
spent = time.process_time() - started
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(json.dumps({"cpu_s": spent, "peak_bytes": int(peak) * 1024}), file=sys.stderr)
"""


def _children_s() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def _tree_s(pid: int) -> float:
    """Processor time of a process and of those it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def run_plain(folder: Path, name: str, work: Path) -> dict[str, float]:
    """The plain script: processor time of the process, of the part after its imports, and its peak memory."""
    import numpy as np

    from winml.modelkit.building.export import samples
    from winml.modelkit.building.export.folder import ModelFolder
    from winml.modelkit.building.export.resolve import ExportOptions, resolve

    section = resolve(ModelFolder(folder), ExportOptions())
    np.savez(work / "inputs.npz", **samples.make_samples(section, section.sizes, seed=section.seed))
    axes = {one.name: [i for i, axis in enumerate(one.shape) if isinstance(axis, str)] for one in section.inputs}
    before = _children_s()
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, folder, name, work / "inputs.npz", json.dumps(axes), work / "plain.onnx"],
        check=False, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1][:200])
    inside = json.loads(done.stderr.strip().splitlines()[-1])
    return {"cold_s": _children_s() - before, "warm_s": inside["cpu_s"], "peak": inside["peak_bytes"]}


def run_cold(folder: Path, work: Path) -> dict[str, float]:
    """`winml export` in a fresh process."""
    before = _children_s()
    command = [sys.executable, "-m", "winml.modelkit", "export", "-m", str(folder), "-o", str(work / "cold")]
    done = subprocess.run([*command, "--json", "--rebuild"], check=True, capture_output=True, text=True)
    (part,) = json.loads(done.stdout)["parts"]
    return {"cold_s": _children_s() - before, "peak": part["metadata"]["peak_memory_bytes"]}


def run_warm(folder: Path, work: Path, pool: Any) -> float:
    """Processor time of an export by a worker that has exported another model before."""
    from winml.modelkit.building.export.command import ExportRequest, export

    worker = pool.start()
    with worker:
        pid = worker._tree.pid
    before = _tree_s(pid) + time.process_time()
    export(ExportRequest(model=str(folder), output=str(work / "warm"), rebuild=True), lambda event: None)
    return _tree_s(pid) + time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    from winml.modelkit.building.export.warm import warm_exports

    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, warm_exports() as pool:
        os.environ["WINML_CACHE"] = str(Path(folder) / "cache")
        models = {}
        for number, name in enumerate(given.only):
            models[name] = Path(folder) / f"model{number}"
            cls, settings = MODELS[name]
            subprocess.run([sys.executable, "-c", MAKE, models[name], cls, json.dumps(settings)], check=True)
        first = next(iter(models.values()))
        with tempfile.TemporaryDirectory() as work:
            run_warm(first, Path(work), pool)  # the worker imports what it needs
        for turn in range(given.rounds):
            for name, path in models.items():
                with tempfile.TemporaryDirectory() as work:
                    _measure(name, path, Path(work), pool, found)
                print(
                    f"round {turn + 1}: {name}",
                    {key: values for key, values in found.items() if name in key},
                    flush=True,
                )
                if given.json is not None:
                    words = f"python benchmarks/export/run.py --rounds {given.rounds}"
                    record.write_results(given.json, words, list(found.items()))


def _measure(name: str, path: Path, work: Path, pool: Any, found: dict[str, list[float]]) -> None:
    plain = run_plain(path, MODELS[name][0], work)
    cold = run_cold(path, work)
    warm_s = run_warm(path, work, pool)
    rows = {
        "winml export / plain script, cold, CPU": cold["cold_s"] / plain["cold_s"],
        "winml export / plain script, warm, CPU": warm_s / plain["warm_s"],
        "warm / cold winml export, CPU": warm_s / cold["cold_s"],
        "winml export / plain script, peak memory": cold["peak"] / plain["peak"],
    }
    for row, value in rows.items():
        found.setdefault(f"{name}: {row}", []).append(value)


if __name__ == "__main__":
    main()
