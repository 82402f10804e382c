"""Qualcomm's profile viewer: turns the EP's binary log and a schematic into an analysis summary (QHAS)."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.worker.command import run_command

SDK_ROOT = "QNN_SDK_ROOT"
TIMEOUT_S = 120.0
_SUMMARY = "_qnn_htp_analysis_summary.json"


class ViewerFailed(Exception):
    """The viewer did not give a summary; the reason is a value of the trace's `fallback_reason`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Viewer:
    """The program and the plug-in that reads operator traces."""

    program: Path
    reader: Path


def _folders() -> tuple[str, ...]:
    if sys.platform == "win32":
        arm = platform.machine().lower() in ("arm64", "aarch64")
        return ("aarch64-windows-msvc", "arm64x-windows-msvc") if arm else ("x86_64-windows-msvc",)
    return ("x86_64-linux-clang", "aarch64-oe-linux-gcc11.2", "aarch64-ubuntu-gcc9.4")


def find_viewer(environment: Mapping[str, str] | None = None) -> Viewer:
    """The viewer of the SDK that `QNN_SDK_ROOT` names; no other place is searched."""
    root = (os.environ if environment is None else environment).get(SDK_ROOT)
    if not root:
        raise ViewerFailed("sdk_missing", f"{SDK_ROOT} is not set; detail needs the QAIRT SDK")
    windows = sys.platform == "win32"
    program = "qnn-profile-viewer.exe" if windows else "qnn-profile-viewer"
    reader = "QnnHtpOptraceProfilingReader.dll" if windows else "libQnnHtpOptraceProfilingReader.so"
    for folder in _folders():
        viewer = Viewer(Path(root) / "bin" / folder / program, Path(root) / "lib" / folder / reader)
        if viewer.program.is_file() and viewer.reader.is_file():
            return viewer
    raise ViewerFailed("sdk_missing", f"{SDK_ROOT}={root} has no {program} with {reader} for this machine")


def analysis_summary(viewer: Viewer, *, log: Path, schematic: Path, folder: Path, timeout_s: float = TIMEOUT_S) -> Path:
    """The summary the viewer makes of a log and a schematic, as a file in `folder`."""
    config = folder / "viewer_config.json"
    config.write_text(json.dumps({"features": {"qhas_json": True}}), encoding="utf-8", newline="\n")
    output = folder / f"{schematic.stem.removesuffix('_schematic')}_optrace.json"
    summary = output.with_name(output.stem + _SUMMARY)
    summary.unlink(missing_ok=True)  # an earlier run's summary must not pass for this one's
    argv = [
        str(viewer.program), "--config", str(config), "--reader", str(viewer.reader), "--input_log", str(log),
        "--schematic", str(schematic), "--output", str(output),
    ]  # fmt: skip
    try:
        done = run_command(argv, cwd=folder, log=folder / "viewer.log", timeout_s=timeout_s)
    except OSError as error:
        raise ViewerFailed("viewer_failed", f"{viewer.program.name} does not start: {error}") from error
    if not done.ok:
        how = f"took longer than {timeout_s:g} s" if done.returncode is None else f"ended with {done.returncode}"
        raise ViewerFailed("viewer_failed", f"{viewer.program.name} {how}: {' '.join(done.tail(3)) or 'no output'}")
    if not summary.is_file():
        raise ViewerFailed("qhas_output_missing", f"{viewer.program.name} wrote no {summary.name}")
    return summary
