"""`winml ep options`: the provider options that winml knows, what values they take and who may set them."""

from __future__ import annotations

from typing import Any

from winml.modelkit.ep import catalog
from winml.modelkit.ep.catalog import EPInfo, Option
from winml.modelkit.ep.ep_command import RESULT_SCHEMA


def _row(name: str, option: Option) -> dict[str, Any]:
    return {
        "name": name,
        "type": option.type,
        "choices": list(option.choices),
        "low": option.low,
        "high": option.high,
        "set_by": "nobody" if option.refused is not None else option.trust,
        "reason": option.refused,
    }


def _entry(info: EPInfo) -> dict[str, Any]:
    return {"ep": info.name, "options": [_row(name, info.options[name]) for name in sorted(info.options)]}


def options(ep: str | None = None) -> dict[str, Any]:
    """The options of one EP, or of every EP that takes some."""
    rows = [info for info in catalog.TABLE if info.options] if ep is None else [catalog.find(ep)]
    return {
        "schema": RESULT_SCHEMA,
        "ok": True,
        "action": "options",
        "eps": [_entry(info) for info in rows],
        "config_entries": sorted(catalog.DOCUMENT_ENTRIES),
    }
