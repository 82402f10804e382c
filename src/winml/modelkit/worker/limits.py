"""How long an operation may take and how much memory it may use before its process is ended.

Models come from others, and a few hundred bytes can keep native code busy indefinitely or make it fill the memory. What
only looks at a model gets little, by the size of the model; everything else gets what the machine has and most of a
day. Address space is never limited: a model that is mapped and a provider that reserves take plenty of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError

INSPECT_TIMEOUT = "WINML_INSPECT_TIMEOUT"
WORK_TIMEOUT = "WINML_WORK_TIMEOUT"
MEMORY_LIMIT = "WINML_MEMORY_LIMIT"

INSPECTING = frozenset(
    {
        "analysis.prepare",
        "compile.compiled",
        "compile.source",
        "compile.users",
        "graph.describe",
        "graph.external_files",
    }
)
"""Operations that read a model and open no session."""
COMPARING = frozenset({"bench.distance", "evaluate.distance"})
"""Operations that read outputs of models."""

_INSPECT_S = 20.0
_COMPARE_S = 60.0
_READ_BYTES_PER_S = 10e6
_INSPECT_MOST_S = 1800.0
_ASK_S = 60.0
_ASK_BYTES_PER_S = 200e3
_WORK_S = 12 * 3600.0
_INSPECT_BYTES = 3 * 2**29
_INSPECT_BYTES_PER_BYTE = 6
"""A model is in memory as a file, as a message, as a copy for shape inference, and once more as canonical bytes."""
_WORK_BYTES = 8 * 2**30
_WORK_BYTES_PER_BYTE = 20
_MACHINE_SHARE = 0.9
"""Nothing may take more of the machine, or of its container."""
_MAX_FILES = 2000
_MAX_LEVELS = 2


@dataclass(frozen=True)
class OperationLimits:
    """Limits of one operation; None is no limit."""

    timeout_s: float | None
    memory_bytes: int | None


def limits_of(op: str, args: dict[str, Any], timeout_s: float | None) -> OperationLimits:
    """The limits of an operation; `timeout_s` is the time that the user or the caller gave, if any."""
    if op in INSPECTING:
        size = sum(size_of(path) for path in _paths(args))
        wanted = min(_INSPECT_S + size / _READ_BYTES_PER_S, _INSPECT_MOST_S)
        memory = _memory(_INSPECT_BYTES + _INSPECT_BYTES_PER_BYTE * size)
        return OperationLimits(timeout_s or _seconds(INSPECT_TIMEOUT, wanted), memory)
    if op in COMPARING:
        # What is compared was made by us, and may be large.
        wanted = _COMPARE_S + sum(_bytes_of(path) for path in _paths(args)) / _READ_BYTES_PER_S
        return OperationLimits(timeout_s or _seconds(INSPECT_TIMEOUT, wanted), _memory(_work_bytes({})))
    return OperationLimits(timeout_s or _seconds(WORK_TIMEOUT, _WORK_S), _memory(_work_bytes(args)))


def _work_bytes(args: dict[str, Any]) -> int:
    """Half the machine, or what a model of that size takes when it is exported or calibrated, whatever is more."""
    size = sum(size_of(path) for path in _paths(args))
    return max((machine_bytes() or 0) // 2, _WORK_BYTES + _WORK_BYTES_PER_BYTE * size)


def _paths(value: Any) -> list[Path]:
    """The files and folders that an operation was given, at any depth of its arguments, each once."""
    found: dict[Path, None] = {}
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, dict):
            rest += item.values()
        elif isinstance(item, list | tuple):
            rest += item
        elif isinstance(item, str) and os.path.isabs(item):  # noqa: PTH117
            found[Path(item)] = None
    return list(found)


def ask_timeout_s(model: Path) -> float | None:
    """How long an execution provider may take to say what it would do with a model."""
    return _seconds(INSPECT_TIMEOUT, _ASK_S + size_of(model) / _ASK_BYTES_PER_S)


def size_of(path: Path) -> int:
    """The bytes of a model file and of what could be its data: the other files beside and below it."""
    total = _bytes_of(path)
    others = _files(path if path.is_dir() else path.parent, _MAX_LEVELS)
    return total + sum(_bytes_of(file) for file in islice(others, _MAX_FILES) if file.suffix != ".onnx")


def _files(folder: Path, levels: int) -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:  # a folder that may not be listed has none
        for entry in entries:
            if entry.is_file():
                yield Path(entry.path)
            elif levels > 1 and entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path), levels - 1)


def _bytes_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # gone, or a broken link; opening it reports that


def _seconds(variable: str, default: float) -> float | None:
    """The seconds that a variable of the environment says; `none` is no limit."""
    text = os.environ.get(variable, "").strip().lower()
    if not text:
        return round(default, 1)  # it is shown to users
    if text == "none":
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise RequestError(
            f"`{variable}` must be seconds above 0, or `none`, but got `{text}`", hint=f"for example `{variable}=300`"
        )
    return value


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt]?)(?:i?b)?)")


def _memory(wanted: int) -> int | None:
    """The memory limit in the environment; without one `wanted`, but never more than the machine's share."""
    text = os.environ.get(MEMORY_LIMIT, "").strip().lower()
    if text == "none":
        return None
    if text:
        found = _SIZE.fullmatch(text)
        value = int(float(found[1]) * 1024 ** " kmgt".index(found[2] or " ")) if found else 0
        if value <= 0:
            raise RequestError(
                f"`{MEMORY_LIMIT}` must be a size, or `none`, but got `{text}`",
                hint=f"for example `{MEMORY_LIMIT}=8GiB`",
            )
        return value
    machine = machine_bytes()
    return wanted if machine is None else int(min(wanted, machine * _MACHINE_SHARE))


@cache
def machine_bytes() -> int | None:
    """The memory of this machine, or of the container that we are in; None when it cannot be asked."""
    if sys.platform == "win32":
        return _windows_bytes()
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
    return min((physical, *_container_limits()))


def _container_limits() -> list[int]:
    """What control groups of Linux allow us; nothing on other systems."""
    found = []
    for file in _container_files():
        try:
            text = file.read_text("ascii").strip()
        except OSError:
            continue  # the other version of control groups, or none
        if text.isdigit():
            found.append(int(text))
    return found


def _container_files() -> list[Path]:
    root = Path("/sys/fs/cgroup")
    try:
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return []
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    folders = [root / own, *(root / own).parents]
    unified = [folder / "memory.max" for folder in folders if folder.is_relative_to(root)]
    return [*unified, root / "memory" / "memory.limit_in_bytes"]


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    class _MemoryStatus(ctypes.Structure):
        _fields_ = [
            ("dwLength", wintypes.DWORD),
            ("dwMemoryLoad", wintypes.DWORD),
            ("ullTotalPhys", ctypes.c_uint64),
            ("ullOther", ctypes.c_uint64 * 6),
        ]

    def _windows_bytes() -> int | None:
        status = _MemoryStatus(dwLength=ctypes.sizeof(_MemoryStatus))
        if not ctypes.WinDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status)):
            return None
        return int(status.ullTotalPhys)
