"""Windows performance counters through pdh.dll; written against its documentation, not run on Windows yet."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_DOUBLE = 0x200
_MORE_DATA = 0x800007D2


class _Value(ctypes.Structure):
    _fields_ = (("status", ctypes.c_uint32), ("value", ctypes.c_double))


class _Item(ctypes.Structure):
    _fields_ = (("name", ctypes.c_wchar_p), ("value", _Value))


def _check(status: int, what: str) -> None:
    if status & 0xFFFFFFFF:
        raise OSError(f"{what} answered 0x{status & 0xFFFFFFFF:08X}")


def busiest(pattern: str) -> Callable[[], float]:
    """Reads the largest value among all instances a counter path matches."""
    pdh: Any = ctypes.CDLL("pdh.dll")
    query, counter = ctypes.c_void_p(), ctypes.c_void_p()
    _check(pdh.PdhOpenQueryW(None, None, ctypes.byref(query)), "PdhOpenQueryW")
    added = pdh.PdhAddEnglishCounterW(query, ctypes.c_wchar_p(pattern), None, ctypes.byref(counter))
    _check(added, f"PdhAddEnglishCounterW({pattern})")
    _check(pdh.PdhCollectQueryData(query), "PdhCollectQueryData")

    def read() -> float:
        _check(pdh.PdhCollectQueryData(query), "PdhCollectQueryData")
        size, count = ctypes.c_uint32(0), ctypes.c_uint32(0)
        sizes = ctypes.byref(size), ctypes.byref(count)
        status = pdh.PdhGetFormattedCounterArrayW(counter, _DOUBLE, *sizes, None)
        if status & 0xFFFFFFFF != _MORE_DATA:
            _check(status, "PdhGetFormattedCounterArrayW")
            return 0.0  # no instance: nothing runs on such an engine
        buffer = ctypes.create_string_buffer(size.value)
        _check(pdh.PdhGetFormattedCounterArrayW(counter, _DOUBLE, *sizes, buffer), "PdhGetFormattedCounterArrayW")
        items = ctypes.cast(buffer, ctypes.POINTER(_Item))
        return float(max((items[i].value.value for i in range(count.value)), default=0.0))

    return read
