"""The files that stories work on: small models, data, lists, and documents that are wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a program

import hf_zoo
import model_zoo

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "src/winml/modelkit/sample"
"""The digits classifier and its data; `{sample}` in a command is its model."""


def open_sizes() -> object:
    """A convolution whose batch, height and width are open."""
    return model_zoo.text_model(
        "open (float[batch,3,height,width] x) => (float[batch,3,height,width] y) { a = Relu(x) y = Add(a, x) }"
    )


def wide_product() -> object:
    """One large matrix product: a dynamic precision makes it a quarter of its size."""
    from onnx import numpy_helper

    model = model_zoo.text_model("wide (float[1,256] x) => (float[1,256] y) { h = MatMul(x, w) y = Relu(h) }")
    weights = (np.random.default_rng(0).standard_normal((256, 256)) * 0.05).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


def deep_net(size: int = 16) -> object:
    """Inputs and outputs of the conv net, and a hundred times its work."""
    from onnx import TensorProto, helper, numpy_helper

    shapes = [(64, 3, 3, 3), *[(64, 64, 3, 3)] * 12, (16, 64, 3, 3)]
    rng = np.random.default_rng(2)
    weights = [(rng.standard_normal(shape) * 0.05).astype(np.float32) for shape in shapes]
    nodes, value = [], "x"
    for i in range(len(shapes)):
        nodes.append(helper.make_node("Conv", [value, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
        value = f"r{i}"
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["p"]))
    nodes.append(helper.make_node("Flatten", ["p"], ["y"]))
    ends = (("x", [1, 3, size, size]), ("y", [1, 16]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ends]
    initializers = [numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(weights)]
    graph = helper.make_graph(nodes, "deep_net", ends[:1], ends[1:], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


MODELS = {
    "deep": deep_net,
    "conv": model_zoo.conv_net,
    "encoder": model_zoo.encoder,
    "split": model_zoo.split_net,
    "open": open_sizes,
    "wide": wide_product,
    "crashes": model_zoo.divides_int_min,
}


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def _documents(folder: Path) -> None:
    (folder / "broken.onnx").write_bytes(b"this is no model")
    (folder / "broken.json").write_text('{"schema": ', encoding="utf-8")
    (folder / "list.txt").write_text("conv.onnx\n# a comment\nfused.onnx\ncrashes.onnx\n", encoding="utf-8")
    (folder / "models.txt").write_text("conv.onnx name=conv\nfused.onnx name=fused priority=P1\n", encoding="utf-8")
    (folder / "empty.txt").write_text("# nothing\n", encoding="utf-8")
    (folder / "empty").mkdir()
    (folder / "texts").mkdir()
    (folder / "texts" / "one.txt").write_text("one\n", encoding="utf-8")
    (folder / "texts" / "two.txt").write_text("two\n", encoding="utf-8")
    space = {"quantize.scheme": ["fp16", "dynamic", "int8"]}
    _json(folder / "space.json", {"schema": "winml/space/1", "knobs": space})
    _json(folder / "fp16.json", {"schema": "winml/space/1", "knobs": {"quantize.scheme": ["fp16"]}})
    npu = {"optimize.conv_activation_fusion": ["on"], "quantize.scheme": ["int8"]}
    _json(folder / "npu-space.json", {"schema": "winml/space/1", "knobs": npu})
    _json(folder / "unknown-knob.json", {"schema": "winml/space/1", "knobs": {"quantize.shceme": ["fp16"]}})
    config = {"schema": "winml/build-config/1", "model": "conv.onnx", "target": "cpu", "optimise": {}}
    _json(folder / "unknown-key.json", config)
    finding = {
        "id": "bart-900", "title": "A claim", "observation": "It was seen.", "status": "reported", "source": "a test",
        "added": "2026-11-16",
    }  # fmt: skip
    _json(folder / "finding.json", finding)
    (folder / "broken-knowledge" / "findings").mkdir(parents=True)
    _json(
        folder / "broken-knowledge" / "findings" / "npu-900.json",
        {"schema": "winml/finding/1", "id": "npu-900", "scope": {"EP": "qnn"}},
    )
    rows = [
        {
            "ep": "qnn", "device": "npu", "model": "microsoft/resnet-18", "hypothesis": name, "opset": opset,
            "passes": None, "session_p50s_ms": medians,
        }
        for name, opset, medians in (
            ("h0", "auto", [2.0, 2.01, 2.02, 1.99, 2.0]),
            ("h1", 21, [1.5, 1.51, 1.49, 1.5, 1.52]),
            ("h2", 19, [2.0, 2.02, 2.01, 2.0, 1.98]),
        )
    ]  # fmt: skip
    _json(folder / "sessions.json", {"kind": "medians", "rows": rows})


def fill(folder: Path) -> None:
    """Write every input but those that a story has for itself."""
    for name, make in MODELS.items():
        model_zoo.saved(make(), folder / f"{name}.onnx")
    model_zoo.saved(model_zoo.conv_net(fused=True), folder / "fused.onnx")
    model_zoo.conv_w8a8(folder / "int8.onnx")
    rng = np.random.default_rng(1)
    np.savez(folder / "calibration.npz", x=rng.random((8, 3, 16, 16), dtype=np.float32))
    np.savez(folder / "other.npz", z=rng.random((2, 4), dtype=np.float32))
    np.savez(folder / "open.npz", x=rng.random((2, 3, 8, 8), dtype=np.float32))
    _documents(folder)


def _family(folder: Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, hf_zoo.__file__, folder, name], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr


def bert(folder: Path) -> None:
    _family(folder, "bert")


def t5(folder: Path) -> None:
    _family(folder, "t5")


def before(folder: Path) -> None:
    """Copies of the documents that an earlier version wrote; the config names its files by their place."""
    shutil.copytree(Path(__file__).parent / "before", folder, dirs_exist_ok=True)
    for number, entry in enumerate(sorted((folder / "cache" / "stages").iterdir())):
        os.utime(entry, (1.8e9 + number, 1.8e9 + number))  # a list of stages is in the order of their use
    path = folder / "config.json"
    path.write_text(path.read_text(encoding="utf-8").replace("/tmp/winml-before", str(folder)), encoding="utf-8")


if __name__ == "__main__":
    fill(Path(sys.argv[1]))
