"""Runs commands of this program as a user would, each in its own process, so that their output is the evidence."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from winml.modelkit import __version__
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import BY_CODE, ModelkitError, RunFailedError
from winml.modelkit.core.events import Event
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.location import VARIABLE
from winml.modelkit.support.review.evidence import MODEL, MOMENT, CommandRun
from winml.modelkit.support.review.results import CommandError
from winml.modelkit.worker.command import wait_for
from winml.modelkit.worker.process_tree import ProcessTree
from winml.modelkit.worker.sandbox import Room, Sandbox

DEFAULT_TIMEOUT_S = 3600.0
_STOP_WAIT_S = 20.0
LARGEST_BYTES = 256 * 2**20
"""No command writes more than this to stdout or stderr."""
_PACKAGES = ("numpy", "onnx", "onnxruntime", "onnxscript", "torch", "transformers")
_SOURCE = str(Path(__file__).parents[3])


def now() -> str:
    """The current time in UTC, to the second."""
    return datetime.now(UTC).strftime(MOMENT)


def describe_environment() -> dict[str, str]:
    """What results depend on besides the model; packages that are not installed are omitted."""
    found = {
        "winml": __version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": str(os.cpu_count()),
    }
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def make_error(error: CommandError, message: str) -> ModelkitError:
    """The error that a command ended with; `message` is used when it has none of its own."""
    known = BY_CODE.get(error.code or "")
    if known is not None:
        return known(error.message or message, hint=error.hint)
    return RunFailedError(f"{message}: {error.message}" if error.message else message)


@dataclass(frozen=True)
class CommandStarted(Event):
    """A command was started."""

    what: str


class Commands:
    """Runs commands on one model in one folder, which gets a subfolder for what they build."""

    def __init__(
        self,
        model: str,
        folder: Path,
        *,
        timeout_s: float | None,
        cache: Path | None = None,
        inside: tuple[Sandbox, Room] | None = None,
    ) -> None:
        """`inside` is the sandbox of every command: the folder and the cache are writable in that room."""
        self._model = str(Path(model).absolute()) if Path(model).exists() else model
        self._folder = folder
        (folder / "artifacts").mkdir(exist_ok=True)
        self._timeout_s = timeout_s or DEFAULT_TIMEOUT_S
        search = os.pathsep.join(filter(None, (_SOURCE, os.environ.get("PYTHONPATH"))))
        self._inside = inside
        known = dict(os.environ) if inside is None else inside[0].environment(inside[1])
        self._env = {**known, "PYTHONPATH": search, "PYTHONIOENCODING": "utf-8"}
        if cache is not None:
            self._env[VARIABLE] = str(cache)

    def __call__(self, words: tuple[str, ...]) -> CommandRun:
        """Run a command; one that takes too long is ended with everything it started."""
        argv = [sys.executable, "-m", "winml.modelkit", *(self._model if w == MODEL else w for w in words)]
        if self._inside is not None:
            sandbox, room = self._inside
            argv = sandbox.command(argv, room, folder=self._folder)
        started, begin = now(), time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            tree = ProcessTree(argv, cwd=self._folder, stderr=err, stdout=out, env=self._env)
            code = _wait(tree, self._timeout_s)
            texts = [_read_text(stream) for stream in (out, err)]
        return CommandRun(words, code, _parse_result(texts[0]), texts[1], started, time.monotonic() - begin)


def _wait(tree: ProcessTree, timeout_s: float) -> int | None:
    """The exit code of a command; None when it took too long. No process of it is left running in any case."""
    try:
        code = wait_for(tree.process, timeout_s)
    except KeyboardInterrupt:
        _interrupt(tree)
        raise
    else:
        if code is None:
            _interrupt(tree)
        return code
    finally:
        tree.end()


def _interrupt(tree: ProcessTree) -> None:
    """Let a command end its children, which have their own process groups; on Windows a job object holds them all."""
    if sys.platform == "win32":
        return
    tree.process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        tree.process.wait(_STOP_WAIT_S)


def _read_text(stream: Any) -> str:
    """The output of a command, up to a limit: endless output would fill our memory."""
    stream.seek(0)
    size = os.fstat(stream.fileno()).st_size
    return str(stream.read(min(size, LARGEST_BYTES)).decode(errors="replace"))


def _parse_result(text: str) -> Mapping[str, Any] | None:
    """The JSON object of a command; None when it is truncated or missing."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
