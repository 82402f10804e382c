from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import analysis_zoo
import model_zoo
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.values import to_json
from winml.modelkit.ep import catalog
from winml.modelkit.knowledge import operators
from winml.modelkit.worker.client import Worker

TABLES = sorted(operators.DATA.glob("*.json"))


def test_what_a_target_takes_refuses_and_what_nobody_knows() -> None:
    assert operators.takes("qnn", "npu", "Conv") is True
    assert operators.takes("qnn", "npu", "com.microsoft:FusedConv") is False
    assert operators.takes("qnn", "npu", "com.example:Mine") is None
    assert operators.takes("vitisai", "npu", "Conv") is None
    assert operators.takes("cpu", "cpu", "com.microsoft:FusedConv") is True


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_table_says_where_it_is_from_and_agrees_with_itself(path: Path) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    ep, _, device = stored["target"].partition("/")
    assert path.stem == stored["target"].replace("/", "_")
    assert (device or ep) in catalog.BY_NAME[ep].devices
    assert stored["source"]["kind"] == "asked"
    assert stored["source"]["runtime"]
    assert stored["source"]["ep"]
    for op, entry in stored["operators"].items():
        counts = list(entry["forms"].values())
        assert all(0 <= took <= asked and asked for took, asked in counts), op
        assert entry["taken"] == any(took for took, _ in counts), op
        assert ("reason" in entry) == any(took < asked for took, asked in counts), op


def test_the_tables_need_no_onnx() -> None:
    code = (
        "import sys; from winml.modelkit.knowledge.operators import takes; takes('qnn', 'npu', 'Conv'); "
        "sys.exit(any(m in sys.modules for m in ('onnx', 'onnxruntime', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


SAMPLE = {
    "Conv": "(float[1,3,8,8] x) => (float[1,2,6,6] y) <float[2,3,3,3] w> { y = Conv (x, w) }",
    "Softmax": "(float[1,8] x) => (float[1,8] y) { y = Softmax (x) }",
    "Gelu": "(float[1,8] x) => (float[1,8] y) { y = Gelu (x) }",
    "Trilu": "(float[4,8] x) => (float[4,8] y) { y = Trilu (x) }",
    "Acos": "(float[1,8] x) => (float[1,8] y) { y = Acos (x) }",
    "com.microsoft:Gelu": "(float[1,8] x) => (float[1,8] y) { y = com.microsoft.Gelu (x) }",
    "com.microsoft:QuickGelu": "(float[1,8] x) => (float[1,8] y) { y = com.microsoft.QuickGelu (x) }",
    "com.microsoft:FastGelu": "(float[1,8] x) => (float[1,8] y) { y = com.microsoft.FastGelu (x) }",
    "com.microsoft:FusedMatMul": """(float[2,4,8] x, float[2,4,8] w) => (float[2,4,4] y)
        { y = com.microsoft.FusedMatMul <transB: int = 1> (x, w) }""",
    "com.microsoft:FusedGemm": """(float[4,8] x, float[8,8] w) => (float[4,8] y)
        { y = com.microsoft.FusedGemm <activation: string = "Relu"> (x, w) }""",
}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


@pytest.mark.qnn
@pytest.mark.parametrize("op", SAMPLE)
def test_the_table_agrees_with_the_ep(worker: Worker, tmp_path: Path, op: str) -> None:
    body = SAMPLE[op].replace("<float[2,3,3,3] w>", f"<float[2,3,3,3] w = {{{','.join(['0.1'] * 54)}}}>")
    path = model_zoo.saved(analysis_zoo.contrib(f"g {body}"), tmp_path / "m.onnx")
    session = to_json(SessionSection(optimization_level="disable"))
    args = {"model": str(path), "ep": "qnn", "device": "npu", "simulated": True, "session": session}
    try:
        nodes = worker.call("analysis.ask", args, timeout_s=60)["nodes"]
    except ModelkitError as error:
        pytest.fail(error.message)
    took = all(node["ep"] == "QNNExecutionProvider" for node in nodes)
    assert took is operators.takes("qnn", "npu", op)
