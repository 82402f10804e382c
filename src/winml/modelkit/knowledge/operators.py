"""Which operators an EP takes, for when it is not here to be asked.

The tables in `data/` say where each answer is from: asked (`scripts/ask_operators.py`), or documented with the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.values import read

DATA = Path(__file__).with_name("data")


@dataclass(frozen=True, kw_only=True)
class TableSource:
    """Where the answers of a table are from."""

    kind: str
    how: str
    onnx: str
    runtime: str
    ep: str | None
    options: Mapping[str, str]


@dataclass(frozen=True)
class OperatorTable:
    """What is known of one EP on one kind of device."""

    source: TableSource
    operators: dict[str, dict[str, Any]]


@cache
def table(ep: str, device: str) -> OperatorTable | None:
    """The table of an EP on a device, or None when there is none."""
    path = DATA / (f"{ep}.json" if ep == device else f"{ep}_{device}.json")
    if not path.is_file():
        return None
    stored = read_json(path)
    return OperatorTable(read(TableSource, stored["source"], "source"), stored["operators"])


def entry(ep: str, device: str, op: str) -> dict[str, Any] | None:
    """What the table has on an operator: `taken`, how many models of each form were, and the reason why not all."""
    known = table(ep, device)
    return None if known is None else known.operators.get(op)


def taken(ep: str, device: str, op: str) -> bool | None:
    """Whether the EP takes the operator (`Conv`, `com.microsoft:FusedConv`) in some form; None when that is unknown."""
    found = entry(ep, device, op)
    return None if found is None else bool(found["taken"])
