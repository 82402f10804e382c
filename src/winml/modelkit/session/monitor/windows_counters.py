"""Windows performance counters through pdh.dll; written against its documentation, not run on Windows yet."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

_DOUBLE = 0x200
_MORE_DATA = 0x800007D2


class _Value(ctypes.Structure):
    _fields_ = (("status", ctypes.c_uint32), ("value", ctypes.c_double))


class _Item(ctypes.Structure):
    _fields_ = (("name", ctypes.c_wchar_p), ("value", _Value))


def _check(status: int, what: str) -> None:
    if status & 0xFFFFFFFF:
        raise OSError(f"{what} answered 0x{status & 0xFFFFFFFF:08X}")


_INSTANCE = re.compile(r"pid_\d+_luid_(0x[0-9a-f]+_0x[0-9a-f]+)_phys_(\d+)_eng_(\d+)_engtype_(.*)", re.IGNORECASE)
"""How Windows names an engine of an adapter as one process uses it."""


def adapter_load(values: Iterable[tuple[str, float]], kind: Literal["gpu", "npu"]) -> float | None:
    """The load of the busiest engine of all adapters of a kind, in percent; None when there is no such adapter.

    An instance is the part that one process takes of an engine, so they are added up. GPUs have an engine for 3D, and
    NPUs have engines for computing alone.
    """
    loads: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    drawing: set[tuple[str, str]] = set()
    for name, value in values:
        found = _INSTANCE.match(name)
        if found is None:
            continue
        adapter = (found[1].lower(), found[2])
        engines = loads.setdefault(adapter, {})
        engine = (found[3], found[4].lower())
        engines[engine] = engines.get(engine, 0.0) + value
        if engine[1] == "3d":
            drawing.add(adapter)
    wanted = [engines for adapter, engines in loads.items() if (adapter in drawing) == (kind == "gpu")]
    if kind == "npu":
        wanted = [engines for engines in wanted if any(word.startswith("compute") for _, word in engines)]
    return min(100.0, max(max(engines.values()) for engines in wanted)) if wanted else None


def counter_values(pattern: str) -> Callable[[], list[tuple[str, float]]]:
    """Reads all instances that a counter path matches, with their names."""
    pdh: Any = ctypes.CDLL("pdh.dll")
    query, counter = ctypes.c_void_p(), ctypes.c_void_p()
    _check(pdh.PdhOpenQueryW(None, None, ctypes.byref(query)), "PdhOpenQueryW")
    added = pdh.PdhAddEnglishCounterW(query, ctypes.c_wchar_p(pattern), None, ctypes.byref(counter))
    _check(added, f"PdhAddEnglishCounterW({pattern})")
    _check(pdh.PdhCollectQueryData(query), "PdhCollectQueryData")

    def read() -> list[tuple[str, float]]:
        _check(pdh.PdhCollectQueryData(query), "PdhCollectQueryData")
        size, count = ctypes.c_uint32(0), ctypes.c_uint32(0)
        sizes = ctypes.byref(size), ctypes.byref(count)
        status = pdh.PdhGetFormattedCounterArrayW(counter, _DOUBLE, *sizes, None)
        if status & 0xFFFFFFFF != _MORE_DATA:
            _check(status, "PdhGetFormattedCounterArrayW")
            return []
        buffer = ctypes.create_string_buffer(size.value)
        _check(pdh.PdhGetFormattedCounterArrayW(counter, _DOUBLE, *sizes, buffer), "PdhGetFormattedCounterArrayW")
        items = ctypes.cast(buffer, ctypes.POINTER(_Item))
        return [(str(items[i].name), float(items[i].value.value)) for i in range(count.value)]

    return read
