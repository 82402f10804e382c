"""The tools of Qualcomm's QAIRT SDK: converter, context generator, and the ONNX file we put around the result."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from winml.modelkit.building.compile.base import CompileJob, CompileTools, Missing
from winml.modelkit.building.compile.result import CompilerName
from winml.modelkit.core.errors import RequestError, RunFailedError, UnavailableError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.ep import options
from winml.modelkit.ep.catalog import EPInfo
from winml.modelkit.store import digest

VARIABLE = "QNN_SDK_ROOT"
CONVERTER = "qairt-converter"
GENERATOR = "qnn-context-binary-generator"
UTILITY = "qnn-context-binary-utility"

HOSTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("Linux", "x86_64"): ("x86_64-linux-clang",),
    ("Linux", "aarch64"): ("aarch64-ubuntu-gcc9.4", "aarch64-oe-linux-gcc11.2"),
    ("Windows", "amd64"): ("x86_64-windows-msvc",),
    ("Windows", "arm64"): ("arm64x-windows-msvc", "aarch64-windows-msvc"),
}
"""Folders of the SDK with tools for a host, best first."""

_DEVICE_KEYS = {"soc_model": "soc_id", "htp_arch": "dsp_arch"}
_GRAPH_KEYS = {
    "vtcm_mb": "vtcm_mb",
    "htp_graph_finalization_optimization_mode": "O",
    "enable_htp_fp16_precision": "fp16_relaxed_precision",
}
"""Provider options of the EP by what the SDK's HTP config calls them."""


class SDK:
    """An SDK folder with tools for this host."""

    def __init__(self, root: Path, folder: str) -> None:
        self.root = root
        self._bin = root / "bin" / folder
        self._lib = root / "lib" / folder

    def tool(self, name: str) -> Path | None:
        for path in (self._bin / name, self._bin / f"{name}.exe"):
            if path.is_file():
                return path
        return None

    def library(self, name: str) -> Path:
        return self._lib / (f"{name}.dll" if sys.platform == "win32" else f"lib{name}.so")

    def environment(self) -> dict[str, str]:
        """Our environment with the SDK's folders first, as its own set-up script does it."""
        # Windows looks for DLLs on the path.
        added: dict[str, tuple[Path, ...]] = {
            "PYTHONPATH": (self.root / "lib" / "python",),
            "PATH": (self._bin, self._lib) if sys.platform == "win32" else (self._bin,),
            "LD_LIBRARY_PATH": (self._lib,),
        }
        changed = {
            name: os.pathsep.join(filter(None, (*map(str, folders), os.environ.get(name))))
            for name, folders in added.items()
        }
        return {**os.environ, VARIABLE: str(self.root), **changed}

    def run(self, name: str, *args: str | Path, folder: Path) -> None:
        """Run a tool to its end; what it prints goes to the worker's log."""
        path = self.tool(name)
        assert path is not None
        # The converter is a Python script, which Windows does not start by itself.
        start = [_python(), str(path)] if sys.platform == "win32" and path.suffix != ".exe" else [str(path)]
        try:
            # In the worker's own process group, so that it ends when the worker is ended.
            done = subprocess.run(
                [*start, *map(str, args)], cwd=folder, env=self.environment(), stdin=subprocess.DEVNULL, check=False
            )
        except OSError as error:
            raise UnavailableError(
                f"`{path}` cannot be started: {error.strerror}", hint="make the SDK's tools executable"
            ) from error
        if done.returncode != 0:
            raise RunFailedError(f"`{name}` of the QAIRT SDK ended with exit code {done.returncode}")


def _python() -> str:
    """The interpreter of the converter: the user's, in which the SDK's packages are; else ours.

    A Windows without Python has a `python.exe` in WindowsApps that opens the Store.
    """
    found = shutil.which("python")
    return sys.executable if found is None or "windowsapps" in found.lower() else found


def find_sdk(tools: CompileTools) -> SDK | Missing:
    """The SDK for this host, or why there is none."""
    hint = f"set {VARIABLE} or use `--qnn-sdk-root` to name the folder of the QAIRT SDK"
    if tools.sdk_root is None:
        return Missing(f"{VARIABLE} is not set", hint)
    if not tools.sdk_root.is_dir():
        return Missing(f"QAIRT SDK not found: `{tools.sdk_root}`", hint)
    system, machine = platform.system(), platform.machine().lower()
    lacking = ""
    for folder in HOSTS.get((system, machine), ()):
        sdk = SDK(tools.sdk_root, folder)
        absent = [name for name in (CONVERTER, GENERATOR, UTILITY) if sdk.tool(name) is None]
        if not absent:
            return sdk
        lacking = f"`{tools.sdk_root}` has no {', '.join(f'`{n}`' for n in absent)} in bin/{folder}"
    return Missing(lacking or f"the QAIRT SDK has no tools for {system} {machine}", hint)


def htp_config(given: dict[str, str], graph: str) -> dict[str, Any]:
    """The SDK's HTP config for provider options; an option that has no effect is an error."""
    reach = {**_DEVICE_KEYS, **_GRAPH_KEYS, "backend_type": ""}
    for name in given:
        if name not in reach:
            known = ", ".join(f"`{k}`" for k in reach)
            raise RequestError(
                f"compiler `qairt` does not support provider option `{name}`", hint=f"it supports {known}"
            )
    if any("," in value for value in given.values()):
        raise RequestError("compiler `qairt` compiles for one SoC at a time")
    device = {_DEVICE_KEYS[k]: f"v{v}" if k == "htp_arch" else int(v) for k, v in given.items() if k in _DEVICE_KEYS}
    settings = {_GRAPH_KEYS[k]: int(v) for k, v in given.items() if k in _GRAPH_KEYS}
    config: dict[str, Any] = {}
    if device:
        config["devices"] = [device]
    if settings:
        config["graphs"] = [{"graph_names": [graph], **settings}]
    return config


class QAIRTCompiler:
    """Converts to the SDK's DLC, generates a context binary from it and writes an ONNX file around that."""

    name: CompilerName = "qairt"
    summary = "converter and context generator of the QAIRT SDK"
    needs_ep = False
    shares = False

    def missing(self, info: EPInfo, tools: CompileTools) -> Missing | None:
        if info.name != "qnn":
            return Missing("it compiles for `qnn` only")
        found = find_sdk(tools)
        return found if isinstance(found, Missing) else None

    def version(self, tools: CompileTools) -> str | None:
        found = find_sdk(tools)
        generator = None if isinstance(found, Missing) else found.tool(GENERATOR)
        return None if generator is None else digest.of_file(generator)

    def compile(self, job: CompileJob) -> dict[str, str]:
        sdk = find_sdk(job.tools)
        if isinstance(sdk, Missing):
            raise UnavailableError(f"compiler `qairt` is not available: {sdk.reason}", hint=sdk.hint)
        given = options.check_options(job.target, job.section.provider_options)
        folder = job.output.parent
        stem = re.sub(r"\W", "_", job.output.stem)
        config = htp_config(given, stem)
        container = Path(f"{stem}.dlc").absolute()  # the worker's own folder: it is not part of the result
        sdk.run(CONVERTER, "--input_network", job.model, "--output_path", container, folder=container.parent)
        _generate(sdk, container, folder, job.output.stem, config)
        description = container.with_suffix(".json")
        binary = folder / f"{job.output.stem}.bin"
        sdk.run(UTILITY, "--context_binary", binary, "--json_file", description, folder=container.parent)
        _wrap(job, binary, description, config)
        return given


def _generate(sdk: SDK, container: Path, folder: Path, name: str, config: dict[str, Any]) -> None:
    extra: list[str | Path] = []
    if config:
        htp, outer = container.with_name("htp.json"), container.with_name("backend.json")
        htp.write_text(json.dumps(config), encoding="utf-8", newline="\n")
        extension = {
            "shared_library_path": str(sdk.library("QnnHtpNetRunExtensions")),
            "config_file_path": str(htp),
        }
        outer.write_text(json.dumps({"backend_extensions": extension}), encoding="utf-8", newline="\n")
        extra = ["--config_file", outer]
    sdk.run(
        GENERATOR,
        *("--backend", sdk.library("QnnHtp")),
        *("--model", sdk.library("QnnModelDlc")),
        *("--dlc_path", container),
        *("--binary_file", name),
        *("--output_dir", folder),
        *extra,
        folder=container.parent,
    )


def _wrap(job: CompileJob, binary: Path, description: Path, config: dict[str, Any]) -> None:
    from winml.modelkit.building.compile.qnn_wrapper import graph_of, wrapper
    from winml.modelkit.graph import files

    try:
        described = read_json(description, lenient=True)
    except (OSError, ValueError) as error:
        raise RunFailedError(f"`{UTILITY}` wrote no description of the context binary: {error}") from error
    graph = graph_of(described)["graphName"]
    for settings in config.get("graphs", ()):
        if graph not in settings["graph_names"]:
            # The generator takes its defaults for a graph that the config does not name, without a warning.
            raise RunFailedError(
                f"options for graph `{settings['graph_names'][0]}` were not applied: the graph is `{graph}`"
            )
    files.save(wrapper(described, binary=binary.read_bytes() if job.section.embed else binary.name), job.output)
    if job.section.embed:
        binary.unlink()
