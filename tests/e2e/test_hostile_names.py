"""Names that carry escape sequences, markup and commands, through every command that shows them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from winml.modelkit.cli import main

CODE = "\x1b[31m\x1b]8;;http://x\x07\x9b2J\b\u202e[red]<script>alert(1)</script>|`touch ran`$(touch ran)"
EVIL = f"{CODE}\nerror: forged\nnext: forged"
FILE = "m\x1b[31m\b[red]$(touch ran)`touch ran`|<b>\nnext: forged\u202e"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such names of files on Windows")


def hostile_model() -> onnx.ModelProto:
    """A model that runs, with every name and text of it hostile."""
    nodes = [
        helper.make_node("MatMul", [f"x{EVIL}", f"w{EVIL}"], [f"a{EVIL}"], name=f"n0{EVIL}"),
        helper.make_node("Gelu", [f"a{EVIL}"], [f"y{EVIL}"], name=f"n1{EVIL}", doc_string=EVIL),
    ]
    graph = helper.make_graph(
        nodes,
        f"g{EVIL}",
        [helper.make_tensor_value_info(f"x{EVIL}", TensorProto.FLOAT, [f"b{EVIL}", 4])],
        [helper.make_tensor_value_info(f"y{EVIL}", TensorProto.FLOAT, [f"b{EVIL}", 8])],
        [helper.make_tensor(f"w{EVIL}", TensorProto.FLOAT, [4, 8], np.ones(32, np.float32))],
        doc_string=EVIL,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10, producer_name=EVIL, producer_version=EVIL
    )
    helper.set_model_props(model, {f"k{EVIL}": EVIL})
    return model


def foreign_model() -> onnx.ModelProto:
    """A model of an operator that nobody has, so that the runtime's own error names it."""
    node = helper.make_node(f"Op{EVIL}", [f"x{EVIL}"], [f"y{EVIL}"], name=EVIL, domain=f"d{EVIL}")
    value = [helper.make_tensor_value_info(f"{name}{EVIL}", TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([node], EVIL, value[:1], value[1:])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(f"d{EVIL}", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of an evil name with everything that commands read."""
    place = tmp_path_factory.mktemp("hostile") / FILE.replace("/", "")
    place.mkdir()
    (place / f"{EVIL.replace('/', '')[:60]}.onnx").write_bytes(hostile_model().SerializeToString())
    (place / "model.onnx").write_bytes(hostile_model().SerializeToString())
    (place / "foreign.onnx").write_bytes(foreign_model().SerializeToString())
    (place / "list.txt").write_text(f"model.onnx priority='{CODE}'\n")
    np.savez(place / "data.npz", **{"z\x1b[31m": np.zeros((2, 4), np.float32)})
    skill = place / "skills" / "a-skill"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        f"---\nname: a-skill\ndescription: {CODE}\n---\n\n`winml {CODE.replace('`', '')}`\n"
    )
    operators = [
        {
            "name": f"n{EVIL}",
            "op_type": f"T{EVIL}",
            "time_us": 2.0,
            "share_pct": 100.0,
            "ep": EVIL,
            "onnx_nodes": [EVIL],
        }
    ]
    trace = {"schema": "winml/op-trace/1", "status": "ok", "error": None, "operators": operators, "summary": {}}
    (place / "a_op_trace.json").write_text(json.dumps(trace))
    model = {"model_type": CODE, "architectures": [CODE], "auto_map": {"AutoModel": CODE}}
    (place / "hf").mkdir()
    (place / "hf" / "config.json").write_text(json.dumps(model))
    (place / "hf" / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    (place / "config.json").write_text(json.dumps({f"k{EVIL}": EVIL}))
    return place


QUICK = ["--sessions", "1", "--iterations", "2", "--warmup", "0"]
CHEAP = {
    "inspect": ["inspect", "-m", "model.onnx"],
    "inspect of a folder": ["inspect", "-m", "hf"],
    "config": ["config", "-m", "model.onnx", "--target", "cpu", "-p", "fp32"],
    "build by a config": ["build", "-c", "config.json", "-o", "OUT"],
    "compile by a config": ["compile", "-m", "model.onnx", "--config", "config.json", "-o", "OUT"],
    "trace diff": ["trace", "diff", "a_op_trace.json", "a_op_trace.json"],
    "trace diff of no trace": ["trace", "diff", "config.json", "a_op_trace.json"],
    "compare from": ["compare", "--from", "config.json"],
    "skill check": ["skill", "check", "skills"],
    "matrix plan": ["matrix", "plan", "--models", "list.txt", "--run-stamp", "s"],
    "matrix of another priority": ["matrix", "plan", "--models", "list.txt", "--priority", CODE],
    "feed list": ["feed", "list", "--feed", "folder:PLACE"],
    "kb show": ["kb", "show", CODE],
    "export": ["export", "-m", "hf", "-o", "OUT"],
    "support review": ["support", "review", "PLACE"],
    "a wrong option": ["perf", f"--{CODE}"],
    "a wrong command": [CODE],
    "catalog": ["catalog", CODE],
}
DEAR = {
    "analyze of what nobody runs": ["analyze", "-m", "foreign.onnx", "--target", "cpu"],
    "analyze": ["analyze", "-m", "model.onnx", "--target", "cpu"],
    "perf": ["perf", "-m", "model.onnx", "--target", "cpu", *QUICK],
    "perf of what nobody runs": ["perf", "-m", "foreign.onnx", "--target", "cpu", *QUICK],
    "perf with a trace": ["perf", "-m", "model.onnx", "--target", "cpu", "--op-tracing", "basic", *QUICK],
    "optimize": ["optimize", "-m", "model.onnx", "-o", "OUT.onnx"],
    "quantize": ["quantize", "-m", "model.onnx", "-p", "dynamic", "-o", "OUT.onnx"],
    "build": ["build", "-m", "model.onnx", "--target", "cpu", "-p", "fp32", "-o", "OUT"],
    "eval": ["eval", "-m", "model.onnx", "--data", "data.npz", "--target", "cpu"],
    "compare": ["compare", "model.onnx", "foreign.onnx", "--target", "cpu"],
    "autoconfig": ["autoconfig", "-m", "model.onnx", "--target", "cpu", "--budget", "20s", "-o", "OUT"],
    "compile": ["compile", "-m", "model.onnx", "--target", "qnn/npu", "-o", "OUT"],
    "support probe": ["support", "probe", "-m", "hf"],
    "matrix run": ["matrix", "run", "--models", "list.txt", "--target", "cpu", "--run-stamp", "s", "-o", "OUT"],
}


def _safe(text: str) -> None:
    """Nothing that moves a cursor, and no line that a name has written."""
    assert not UNSAFE.search(text), repr(UNSAFE.findall(text))
    assert not [line for line in text.splitlines() if line.startswith(("error: forged", "next: forged"))], text


def _pasted(text: str, folder: Path) -> None:
    """What stands after `next:` runs nothing but the command it shows."""
    for line in text.splitlines():
        if line.startswith("next: "):
            command = line.removeprefix("next: ").replace("winml", ":", 1)
            subprocess.run(["bash", "-c", command], cwd=folder, check=False, capture_output=True)
            assert not (folder / "ran").exists(), line


def _run(words: list[str], place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    replaced = [word.replace("PLACE", str(place)).replace("OUT", str(tmp_path / "out\x1b[0m")) for word in words]
    args = [str(place / word) if (place / word).exists() and word else word for word in replaced]
    code = main.run(args)
    out, err = capfd.readouterr()
    assert code not in (70,), err
    assert (out + err).strip()
    _safe(out)
    _safe(err)
    _pasted(err, tmp_path)
    if words[0] != CODE:
        main.run([*args, "--json"])
        out, _ = capfd.readouterr()
        _safe(out)
        json.loads(out)


@pytest.mark.parametrize("name", CHEAP)
def test_hostile_names_are_shown_as_they_are(
    name: str, place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _run(CHEAP[name], place, tmp_path, capfd)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEAR)
def test_hostile_names_are_shown_as_they_are_by_commands_that_run_models(
    name: str, place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _run(DEAR[name], place, tmp_path, capfd)


def test_reports_of_hostile_names_hold_no_markup(tmp_path: Path) -> None:
    from winml.modelkit.core.error_object import ErrorObject
    from winml.modelkit.render.autoconfig_sweep import sweep_markdown
    from winml.modelkit.render.contribution import batch_markdown
    from winml.modelkit.search.result import SweepResult, SweepRow
    from winml.modelkit.support.batch import BatchResult, BatchRow

    error = ErrorObject(code="failed", message=EVIL, hint=None, exit=1)
    searched = SweepRow(model=EVIL, folder=EVIL, error=error, champion=None, trials=0, node=None)
    produced = BatchRow(model=EVIL, status="OUT-OF-SCOPE", folder=EVIL, reached=None, tiers=None, reason=EVIL)
    for text in (
        sweep_markdown(SweepResult(folder=EVIL, models=(searched,), total=1, notes=(), next="")),
        batch_markdown(BatchResult(folder=EVIL, models=(produced,))),
    ):
        _safe(text)
        assert "<script>" not in text
        assert "[red]" not in text.replace("\\[red\\]", "")
        assert len(text.strip().splitlines()[-1].replace("\\|", "").split("|")) > 5
