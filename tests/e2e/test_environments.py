"""Execution providers in environments of their own, for real: OpenVINO on this CPU, WebGPU on SwiftShader."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from program import QUICK, Done, failed, valid
from program import winml as run

import feed_zoo

pytestmark = [pytest.mark.package_index, pytest.mark.xdist_group("environments"), pytest.mark.timeout(900)]

# Kept beside the packages of this environment, so that running the tests again does not install again.
CACHE = Path(sys.prefix) / "winml-test-cache"
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")


def winml(*args: str | Path, cache: Path = CACHE, **environment: str) -> Done:
    return run(*args, env={**os.environ, "WINML_CACHE": str(cache), **environment})


def installed(ep: str) -> dict[str, Any]:
    listed = valid(winml("ep", "list", "--json").stdout)["environments"]
    found = [e for e in listed if e["ep"] == ep]
    if not found:
        result = winml("ep", "install", ep, "--json")
        assert result.returncode == 0, result.stderr
        found = [e for e in valid(result.stdout)["environments"] if e["ep"] == ep]
    return found[0]


@pytest.fixture(scope="module")
def openvino() -> dict[str, Any]:
    if sys.platform == "darwin":
        pytest.skip("onnxruntime-openvino has no wheel for macOS")
    return installed("openvino")


def test_openvino_runs_on_this_cpu_like_any_other_target(openvino: dict[str, Any], zoo: Path) -> None:
    value = valid(winml("perf", "-m", zoo / "conv.onnx", "--target", "openvino/cpu", *QUICK, "--json").stdout)
    assert value["target"] == "openvino/cpu"
    assert value["simulated"] is False
    assert value["placement"]["nodes"] == {"OpenVINOExecutionProvider": 8}
    assert value["provider_options"] == {"device_type": "CPU"}
    assert value["environment"]["runtime"]["version"] == openvino["version"]
    assert value["environment"]["ep"] == {"name": "openvino", "version": openvino["version"]}


def test_openvino_options_reach_it(openvino: dict[str, Any], zoo: Path) -> None:
    words = ("--target", "openvino/cpu", "--ep-options", "num_of_threads=1")
    value = valid(winml("perf", "-m", zoo / "conv.onnx", *words, *QUICK, "--json").stdout)
    assert value["provider_options"] == {"device_type": "CPU", "num_of_threads": "1"}


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        (["--target", "openvino/npu"], 3, "has no npu on this machine"),
        (["--target", "openvino/cpu", "--ep-options", "device_type=NPU"], 2, "contradicts the target"),
        (["--target", "openvino/cpu", "--ep-options", "num_of_threads=abc"], 2, "must be a whole number"),
    ],
)
def test_what_the_wheel_would_quietly_run_on_the_cpu_is_an_error(
    openvino: dict[str, Any], zoo: Path, words: list[str], exit_code: int, message: str
) -> None:
    assert message in failed(winml("perf", "-m", zoo / "conv.onnx", *words, *QUICK), exit_code)


def test_a_session_the_wheel_opened_on_the_cpu_instead_is_an_error(openvino: dict[str, Any], zoo: Path) -> None:
    """The same two cases behind our own checks: what WinMLSession sees when the wheel falls back."""
    code = f"""
import sys
sys.path.append({str(Path(__file__).parents[2] / "src")!r})
from winml.modelkit.core.errors import PlacementError
from winml.modelkit.core.target import Target
from winml.modelkit.ep import options
from winml.modelkit.session.session import WinMLSession
for wrong in ({{"device_type": "NPU"}}, {{"device_type": "CPU", "num_of_threads": "abc"}}):
    options.complete = lambda target, given: (wrong, {{}})
    try:
        WinMLSession({str(zoo / "conv.onnx")!r}, target=Target("openvino", "cpu"))
    except PlacementError as error:
        print(error.message)
"""
    python = Path(openvino["folder"]) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    result = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, timeout=120)
    assert result.stdout.count("the runtime opened CPUExecutionProvider instead") == 2, result.stdout + result.stderr


def test_sys_shows_the_environment(openvino: dict[str, Any]) -> None:
    value = valid(winml("sys", "--json").stdout)
    found = next(ep for ep in value["eps"] if ep["ep"] == "openvino")["installations"]
    assert [i["environment"] for i in found if i["environment"]] == [openvino["folder"]]


def test_installing_twice_is_refused_with_the_way_to_do_it(openvino: dict[str, Any]) -> None:
    assert "--rebuild" in failed(winml("ep", "install", "OpenVINO"), 2)


def test_a_version_that_does_not_exist_leaves_nothing(tmp_path: Path) -> None:
    result = winml("ep", "install", "openvino", "--version", "0.0.1", cache=tmp_path / "cache")
    assert "installing `onnxruntime-openvino==0.0.1`" in failed(result, 3)
    assert valid(winml("ep", "list", "--json", cache=tmp_path / "cache").stdout)["environments"] == []
    assert [p.name for p in (tmp_path / "cache" / "environments").iterdir() if not p.name.endswith(".lock")] == []


def test_eps_that_need_no_environment_are_refused_with_the_reason(tmp_path: Path) -> None:
    assert "part of onnxruntime" in failed(winml("ep", "install", "cpu", cache=tmp_path), 2)
    assert "did you mean" in failed(winml("ep", "install", "opnvino", cache=tmp_path), 2)
    assert "has no private environment" in failed(winml("ep", "remove", "openvino", cache=tmp_path), 2)


def test_an_environment_without_its_manifest_is_none_and_remove_deletes_it(tmp_path: Path) -> None:
    folder = tmp_path / "environments" / "openvino"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    assert valid(winml("ep", "list", "--json", cache=tmp_path).stdout)["environments"] == []
    manifest = {
        "schema": "winml/environment/1",
        "ep": "openvino",
        "distribution": "onnxruntime-openvino",
        "version": "1",
    }
    (folder / "environment.json").write_text(json.dumps(manifest))
    assert len(valid(winml("ep", "list", "--json", cache=tmp_path).stdout)["environments"]) == 1
    assert winml("ep", "remove", "openvino", cache=tmp_path).returncode == 0
    assert not folder.exists()


def _has_library(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _swiftshader() -> dict[str, str]:
    """The environment for a Vulkan driver that needs no GPU: Chromium's, and the loader that finds it.

    Each piece is the one of the machine, or is unpacked from its package: neither needs root nor changes the machine.
    """
    driver, libraries = SWIFTSHADER, os.environ.get("LD_LIBRARY_PATH", "")
    if sys.platform == "linux" and not driver.exists():
        chromium = feed_zoo.unpacked("chromium-common")
        driver = driver if chromium is None else chromium / SWIFTSHADER.relative_to("/")
    if sys.platform == "linux" and not _has_library("libvulkan.so.1"):
        loader = feed_zoo.unpacked("libvulkan1")
        found = [] if loader is None else sorted(loader.rglob("libvulkan.so.1"))
        if not found:
            pytest.skip("needs the Vulkan loader (apt-get install libvulkan1)")
        libraries = os.pathsep.join(filter(None, (str(found[0].parent), libraries)))
    if not driver.exists():
        pytest.skip("needs Chromium's SwiftShader (apt-get install chromium-common)")
    return {"VK_ICD_FILENAMES": str(driver), "LD_LIBRARY_PATH": libraries}


def test_webgpu_computes_on_swiftshader(zoo: Path) -> None:
    vulkan = _swiftshader()
    installed("webgpu")
    words = ("perf", "-m", zoo / "conv.onnx", "--target", "webgpu/gpu", *QUICK, "--json")
    value = valid(winml(*words, **vulkan).stdout)
    assert value["target"] == "webgpu/gpu"
    assert value["placement"]["nodes"]["WebGpuExecutionProvider"] > 0
    assert not value["placement"]["fallback"]
    assert "WebGPU finds no GPU" in failed(winml(*words, **vulkan | {"VK_ICD_FILENAMES": "/nowhere"}), 3)
