"""ModelCompiler behind our errors."""

from __future__ import annotations

from pathlib import Path

import pytest

import model_zoo
from winml.modelkit.core.errors import ModelFileError, PlacementError, RequestError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.session.compiling import compile_to_file

pytestmark = pytest.mark.qnn
NPU = Target("qnn", "npu", simulated=True)


def _compile(model: Path, output: Path, section: SessionSection | None = None) -> None:
    compile_to_file(model, output, target=NPU, section=section or SessionSection(), embed=False)


def test_the_ep_and_its_options_are_told(zoo: Path, tmp_path: Path) -> None:
    chosen = compile_to_file(zoo / "conv.onnx", tmp_path / "m.onnx", target=NPU, section=SessionSection(), embed=False)
    assert (tmp_path / "m.onnx").is_file()
    assert (tmp_path / "m_qnn.bin").is_file()
    assert chosen.added_options == {"backend_type": "htp", "soc_model": "60"}


def test_nothing_compiled_is_an_error_and_leaves_no_file(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(PlacementError, match="compiled none of the nodes"):
        _compile(zoo / "hang.onnx", tmp_path / "m.onnx")
    # Without the flag the compiler would write the model as it is, and report success.
    with pytest.raises(PlacementError, match="compiled none of the nodes"):
        _compile(zoo / "conv.onnx", tmp_path / "m.onnx", SessionSection(ep_options={"soc_model": "9999"}))
    assert list(tmp_path.iterdir()) == []


def test_a_compiled_model_is_not_compiled_again(zoo: Path, tmp_path: Path) -> None:
    _compile(zoo / "conv.onnx", tmp_path / "m.onnx")
    with pytest.raises(ModelFileError, match="already compiled"):
        _compile(tmp_path / "m.onnx", tmp_path / "n.onnx")


def test_wrong_options_and_broken_files_are_our_errors(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no option `bogus`"):
        _compile(zoo / "conv.onnx", tmp_path / "m.onnx", SessionSection(ep_options={"bogus": "1"}))
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(model_zoo.conv_net().SerializeToString()[:300])
    with pytest.raises(ModelFileError, match="truncated"):
        _compile(broken, tmp_path / "m.onnx")
