from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path

import pytest

from winml.modelkit import __version__
from winml.modelkit.cli import main
from winml.modelkit.cli.version import version_text


def test_the_versions_are_those_of_the_metadata(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WINML_CACHE", str(tmp_path))
    first, *rest = version_text("wmk").splitlines()
    assert first == f"wmk {__version__}"
    told = {line.split()[0]: line.split(maxsplit=1)[1] for line in rest}
    assert told["winml-modelkit"] == __version__
    assert told["Python"] == platform.python_version()
    assert told["onnxruntime"] == version("onnxruntime")
    assert told["onnx"] == version("onnx")
    assert told["platform"].startswith(platform.system())
    assert list(told)[-1] == "platform"


def test_an_ep_in_an_environment_of_its_own_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "environments" / "openvino"
    for name in ("bin/python", "Scripts/python.exe"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    manifest = {"schema": "winml/environment/1", "ep": "openvino", "distribution": "onnxruntime-openvino"}
    (folder / "environment.json").write_text(json.dumps({**manifest, "version": "1.24.1"}))
    monkeypatch.setenv("WINML_CACHE", str(tmp_path))
    assert "onnxruntime-openvino  1.24.1 (own environment)" in version_text("winml")


def test_the_program_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"winml {__version__}\n")
    assert "\nonnxruntime" in shown
