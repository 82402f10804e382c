"""What `winml compile` decides before and after the work."""

from __future__ import annotations

from pathlib import Path

import pytest

import compile_values
import winml.modelkit
from winml.modelkit.building.compile.command import (
    CompileRequest,
    _place,
    _section,
    compile_multiple_onnx,
    list_compilers,
    load_settings,
    raise_for,
    read_settings,
)
from winml.modelkit.building.compile.result import CompiledModel, FailedModel
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.errors import ModelFileError, ModelkitError, PartlyDone, RequestError, RunFailedError


def test_one_model_goes_to_a_file_or_into_a_folder(tmp_path: Path) -> None:
    assert _place(CompileRequest(("m.onnx",), output=str(tmp_path / "x.onnx"))).names == ("x.onnx",)
    place = _place(CompileRequest(("a/m.onnx",), output_dir=str(tmp_path / "new")))
    assert (place.folder, place.names) == (tmp_path / "new", ("m_ctx.onnx",))


@pytest.mark.parametrize(
    ("models", "where", "message"),
    [
        (("a.onnx", "b.onnx"), {"output": "x.onnx"}, "`-o` names one file"),
        (("a.onnx", "b.onnx"), {}, "the output must be given exactly once: `--output-dir DIR`"),
        (("a.onnx",), {}, "`-o FILE` or `--output-dir DIR`"),
        (("a.onnx",), {"output": "x.onnx", "output_dir": "d"}, "once"),
        (("a.onnx",), {"output": "folder"}, "must end in .onnx"),
        (("a.onnx",), {"output": "no/such/x.onnx"}, "output folder not found"),
        (("a.onnx",), {"output_dir": __file__}, "is a file"),
    ],
)
def test_other_places_are_refused(models: tuple[str, ...], where: dict[str, str], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        _place(CompileRequest(models, **where))  # type: ignore[arg-type]


def test_the_command_line_wins_over_the_config() -> None:
    stored = read_settings(
        {"compile": {"compiler": "ort_jit", "embed": True, "provider_options": {"soc_model": "43", "vtcm_mb": "8"}}}
    )
    kept = _section(CompileRequest(stored=stored))
    assert (kept.compiler, kept.embed) == ("ort_jit", True)
    changed = _section(CompileRequest(stored=stored, compiler="ort", ep_options={"soc_model": "60"}))
    assert (changed.compiler, changed.provider_options) == ("ort", {"soc_model": "60", "vtcm_mb": "8"})
    assert _section(CompileRequest(compiler="ort_session")).compiler == "ort_jit"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "config not found"),
        ("{", "is not a config"),
        ("[]", "must be an object"),
        ('{"complie": {}}', "unknown key `complie`"),
        ('{"target": "qnn/npu"}', "no `compile` section"),
        ('{"compile": null}', "no `compile` section"),
        ('{"compile": {"embde": true}}', "unknown key `compile.embde`"),
        ('{"compile": {}, "target": 3}', "`target` must be text"),
        ('{"schema": "winml/build-config/2", "compile": {}}', "this winml reads `winml/build-config/1`"),
    ],
)
def test_a_config_without_a_compile_section_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "c.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(RequestError, match=message):
        load_settings(str(path))


DONE = compile_values.compiled_model("a")


def _failed(name: str, error: ModelkitError) -> FailedModel:
    return FailedModel(model=name, error=ErrorObject.of(error), log=("last line",), validation=None, proof=None)


FILE, RUN = ModelFileError("no model", hint="do this"), RunFailedError("no luck")


@pytest.mark.parametrize(
    ("rows", "kind", "message"),
    [
        ([_failed("a", FILE)], ModelFileError, "^no model$"),
        ([DONE, _failed("b", RUN)], PartlyDone, "1 of 2 models were not compiled: b: no luck"),
        (
            [_failed("a", FILE), _failed("b", FILE)],
            ModelFileError,
            "none of 2 models was compiled: a: no model; b",
        ),
        ([_failed("a", FILE), _failed("b", RUN)], RunFailedError, "none of 2"),
    ],
)
def test_the_exit_code_says_how_much_was_done(
    rows: list[CompiledModel | FailedModel], kind: type[ModelkitError], message: str
) -> None:
    result = compile_values.result(*rows)
    with pytest.raises(kind, match=message) as caught:
        raise_for(result)
    assert type(caught.value) is kind
    assert caught.value.result == result
    assert caught.value.details["log"] == ["last line"]
    raise_for(compile_values.result(DONE))


def test_the_api_is_there_without_importing_it_first() -> None:
    assert winml.modelkit.compile_multiple_onnx is compile_multiple_onnx
    with pytest.raises(AttributeError, match="no attribute 'compile_multiple_onix'"):
        winml.modelkit.compile_multiple_onix  # type: ignore[attr-defined]  # noqa: B018


def test_the_api_takes_only_what_it_knows(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="unknown key `compiler`"):
        compile_multiple_onnx([zoo / "conv.onnx"], tmp_path, {"compiler": "ort"})
    with pytest.raises(RequestError, match="does not compile models"):
        compile_multiple_onnx([zoo / "conv.onnx"], tmp_path, {"target": "cpu"})
    with pytest.raises(RequestError, match="output folder .* is a file"):
        compile_multiple_onnx([zoo / "conv.onnx", zoo / "fused.onnx"], zoo / "conv.onnx", {"target": "qnn/npu"})


@pytest.mark.qnn
def test_the_api_compiles_several_models_and_reports_those_that_fail(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINML_CACHE", str(tmp_path / "cache"))
    config = {"target": "qnn/npu", "compile": {"provider_options": {"soc_model": "60"}}}
    models = [zoo / "conv.onnx", zoo / "relu.onnx"]
    result = compile_multiple_onnx(models, tmp_path / "out", config, validate=False)
    assert [row["status"] for row in result["models"]] == ["compiled", "failed"]
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"conv_ctx.onnx", "conv_ctx_qnn.bin"}
    assert any("no other model is left" in w for w in result["warnings"])
    assert result["models"][0]["validation"]["reason"] == "`--no-verify`"


@pytest.mark.qnn
def test_compilers_are_listed_with_the_reason_of_those_that_are_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)
    listed = {row.compiler: row for row in list_compilers(CompileRequest(target="qnn/npu")).compilers}
    assert listed["ort"].available
    assert listed["ort"].default
    assert listed["ort_jit"].available
    assert listed["qairt"].reason == "QNN_SDK_ROOT is not set"
    absent = list_compilers(CompileRequest(ep="vitisai")).compilers
    assert all(not row.available and row.reason for row in absent)
