"""Which operators an EP supports, for machines where it cannot be queried.

The tables in `data/` name the source of each answer: queried (`scripts/ask_operators.py`), or documented on a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.values import key, read

DATA = Path(__file__).with_name("data")


@dataclass(frozen=True, kw_only=True)
class TableSource:
    """The source of a table."""

    kind: str
    how: str
    onnx: str
    runtime: str
    ep: str | None
    options: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class OperatorSupport:
    """Support for one operator."""

    taken: bool
    """Whether the EP supports it in some form."""
    forms: Mapping[str, tuple[int, int]]
    """How many models of each form it supported, of how many."""
    reason: str | None = key(omit=True)
    """Why some are not supported."""


@dataclass(frozen=True, kw_only=True)
class OperatorTable:
    """Operator support of one EP on one kind of device."""

    schema: Literal["winml/operators/1"] = "winml/operators/1"
    target: str
    source: TableSource
    operators: Mapping[str, OperatorSupport]


@cache
def load_table(ep: str, device: str) -> OperatorTable | None:
    """The table of an EP on a device, or None when there is none."""
    path = DATA / (f"{ep}.json" if ep == device else f"{ep}_{device}.json")
    return read(OperatorTable, read_json(path)) if path.is_file() else None


def find_operator(ep: str, device: str, op: str) -> OperatorSupport | None:
    """The table's entry for an operator (`Conv`, `com.microsoft:FusedConv`)."""
    table = load_table(ep, device)
    return None if table is None else table.operators.get(op)


def takes(ep: str, device: str, op: str) -> bool | None:
    """Whether the EP supports the operator in some form; None when that is unknown."""
    found = find_operator(ep, device, op)
    return None if found is None else found.taken
