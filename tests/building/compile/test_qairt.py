"""The QAIRT SDK by its documented command lines; the real one has not been run by these tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from winml.modelkit.building.compile.base import CompileJob, CompileTools
from winml.modelkit.building.compile.qairt import GENERATOR, QAIRTCompiler, htp_config
from winml.modelkit.building.compile.result import CompileCost
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import RequestError, RunFailedError, UnavailableError
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog
from winml.modelkit.session.session import WinMLSession
from winml.modelkit.worker.client import Worker

NPU = Target("qnn", "npu", simulated=True)
QNN = catalog.BY_NAME["qnn"]


def _compile(model: Path, output: Path, sdk: Path, **section: object) -> None:
    job = CompileJob(model, output, NPU, CompileSection("qairt", **section), tools=CompileTools(sdk))  # type: ignore[arg-type]
    with Worker() as worker:
        worker.ask(CompileCost, "compile.model", job, timeout_s=60)


@pytest.mark.qnn
@pytest.mark.parametrize("embed", [False, True])
def test_the_result_opens_and_computes_what_the_source_computes(
    sdk: Path, zoo: Path, tmp_path: Path, embed: bool
) -> None:
    _compile(zoo / "conv.onnx", tmp_path / "m_ctx.onnx", sdk, embed=embed)
    assert {p.name for p in tmp_path.iterdir()} == ({"m_ctx.onnx"} if embed else {"m_ctx.onnx", "m_ctx.bin"})
    feed = {"x": np.random.default_rng(0).random((1, 3, 16, 16), dtype=np.float32)}
    with (
        WinMLSession(tmp_path / "m_ctx.onnx", target=NPU) as made,
        WinMLSession(zoo / "conv.onnx", target=NPU) as source,
    ):
        np.testing.assert_array_equal(made.run(feed)["y"], source.run(feed)["y"])


@pytest.mark.qnn
def test_options_reach_the_config_of_the_htp(sdk: Path, zoo: Path, tmp_path: Path) -> None:
    _compile(zoo / "conv.onnx", tmp_path / "m.onnx", sdk, provider_options={"soc_model": "60", "htp_arch": "73"})
    assert json.loads((sdk / "htp.json").read_text()) == {"devices": [{"soc_id": 60, "dsp_arch": "v73"}]}


@pytest.mark.qnn
def test_options_for_a_graph_that_has_another_name_are_an_error(sdk: Path, zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="were not applied"):
        _compile(zoo / "conv.onnx", tmp_path / "m.onnx", sdk, provider_options={"vtcm_mb": "8"})


@pytest.mark.qnn
def test_a_tool_that_fails_is_named_with_its_last_lines(sdk: Path, zoo: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copy(zoo / "conv.onnx", tmp_path / "broken.onnx"))
    with pytest.raises(RunFailedError, match=f"`{GENERATOR}` of the QAIRT SDK ended with exit code 1") as caught:
        _compile(broken, tmp_path / "m.onnx", sdk)
    assert "the graph cannot be finalized" in caught.value.details["log"]


def test_options_that_have_no_effect_are_refused() -> None:
    with pytest.raises(RequestError, match="does not support provider option `profiling_level`"):
        htp_config({"profiling_level": "basic"}, "g")
    with pytest.raises(RequestError, match="one SoC at a time"):
        htp_config({"soc_model": "60,87"}, "g")


def test_options_of_the_graph_are_numbers() -> None:
    assert htp_config(
        {"vtcm_mb": "8", "htp_graph_finalization_optimization_mode": "3", "backend_type": "htp"}, "g"
    ) == {"graphs": [{"graph_names": ["g"], "vtcm_mb": 8, "O": 3}]}


def test_it_says_why_it_is_not_here(tmp_path: Path) -> None:
    compiler = QAIRTCompiler()
    for tools, reason in (
        (CompileTools(), "QNN_SDK_ROOT is not set"),
        (CompileTools(tmp_path / "gone"), "QAIRT SDK not found"),
        (CompileTools(tmp_path), "has no `qairt-converter`"),
    ):
        missing = compiler.missing(QNN, tools)
        assert missing is not None
        assert reason in missing.reason
        assert "--qnn-sdk-root" in (missing.hint or "")
    other = compiler.missing(catalog.BY_NAME["openvino"], CompileTools())
    assert other is not None
    assert "`qnn` only" in other.reason


def test_compiling_without_the_sdk_is_a_matter_of_the_machine(zoo: Path, tmp_path: Path) -> None:
    job = CompileJob(zoo / "conv.onnx", tmp_path / "m.onnx", NPU, CompileSection("qairt"))
    with pytest.raises(UnavailableError, match="QNN_SDK_ROOT is not set"):
        QAIRTCompiler().compile(job)


@pytest.mark.qnn
def test_another_sdk_is_another_version(sdk: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(sdk, tmp_path / "qairt"))
    compiler = QAIRTCompiler()
    assert compiler.version(CompileTools(copied)) == compiler.version(CompileTools(sdk))
    generator = next(copied.rglob(GENERATOR))
    generator.write_text(generator.read_text() + "# another build\n")
    assert compiler.version(CompileTools(copied)) != compiler.version(CompileTools(sdk))
