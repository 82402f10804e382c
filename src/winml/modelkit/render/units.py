"""Numbers with units, rounded for reading."""

from __future__ import annotations


def ms(value: float) -> str:
    """Milliseconds with about three significant digits: `0.0123 ms`, `8.41 ms`, `132 ms`."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3 if value >= 0.1 else 4
    return f"{value:.{digits}f} ms"


def _scale(value: float, base: int, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if round(value, 1) < base:
            return f"{value:.1f} {unit}"
        value /= base
    return f"{value:.1f} {units[-1]}"


def size(count: int) -> str:
    """Bytes in binary units: `812 B`, `4.2 KiB`, `1.3 GiB`."""
    return f"{count} B" if count < 1024 else _scale(count / 1024, 1024, ("KiB", "MiB", "GiB", "TiB"))


def size_unit(largest: float) -> tuple[int, str]:
    """Bytes of the unit in which sizes up to this one are written, and its name: for an axis, which has one."""
    units = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))
    return next((one for one in units if largest >= one[0]), (1, "bytes"))


def amount(count: int) -> str:
    """Large counts in short: `912`, `4.3 k`, `11.7 M`, `1.8 G`."""
    return str(count) if count < 1000 else _scale(count / 1000, 1000, ("k", "M", "G", "T"))


def counted(count: int, noun: str) -> str:
    """A count with its noun: `1 file`, `3 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


PLAIN_METRICS = frozenset({"pearson", "spearman", "number", "rate", "perplexity", "r2", "score", "total"})
"""Kinds of metrics that are written as they are; others are fractions, written in percent."""
CORRELATIONS = frozenset({"pearson", "spearman"})
