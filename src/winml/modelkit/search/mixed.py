"""Mixed precision as levels of the knob `quantize.scheme`: a few, made from a sensitivity that was measured before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit.accuracy.sensitivity_result import GroupEffect, SensitivityResult
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.values import read
from winml.modelkit.store import digest

SHARES = (0.0, 0.1, 0.25)
"""Parts of the layers that are wider than the others, those first that do most; at least one."""
SCHEME = "quantize.scheme"


def read_sensitivity(path: str) -> SensitivityResult:
    """The result of `winml quantize --sensitivity` in a file."""
    if not Path(path).is_file():
        raise RequestError(f"sensitivity file not found: `{path}`", hint=near_path(path))
    try:
        return read(SensitivityResult, read_json(Path(path)))
    except (ValueError, RequestError) as error:
        raise RequestError(
            f"`{path}` is no result of `winml quantize --sensitivity`: {error}",
            hint="make one with `winml quantize -m MODEL --sensitivity -o FILE`",
        ) from error


def add_levels(knobs: Iterable[Knob], every: Iterable[Knob], found: SensitivityResult) -> tuple[Knob, ...]:
    """The knobs with mixed levels of the precision that the sensitivity was measured at, which is a level of `every`.

    They are levels of the scheme and no knob of their own: where the scheme alone fails the gate, a knob within it
    would never be tried.
    """
    kept = tuple(knobs)
    scheme = next((knob for knob in every if knob.name == SCHEME), None)
    base = None if scheme is None else _find_base(scheme, found.precision)
    if scheme is None or base is None:
        return kept
    made = tuple(_levels(base, found))
    if all(knob.name != SCHEME for knob in kept):
        return (replace(scheme, levels=made), *kept)
    return tuple(replace(knob, levels=(*knob.levels, *made)) if knob.name == SCHEME else knob for knob in kept)


def _find_base(scheme: Knob, precision: str) -> Level | None:
    return next((level for level in scheme.levels if level.sets.get("precision") == precision), None)


def _levels(base: Level, found: SensitivityResult) -> Iterator[Level]:
    """The scheme with more and more layers in 16 bits, where the target has them, and then in float."""
    groups = [group for group in found.groups if group.effect.state == "measured"]
    if not groups:
        return
    section = base.sets["quantize"]
    counts = sorted({max(1, round(share * len(groups))) for share in SHARES})
    ways = [("float", "exclude_nodes")]
    if section.get("rules") == "qnn" and section.get("activation_type") in ("uint8", "int8"):
        ways.insert(0, ("wide", "wide_nodes"))
    for word, key in ways:
        for count in counts:
            nodes = _nodes(groups[:count])
            # What a level means is part of its name, so that a search is not resumed with another file.
            name = f"{base.name}-{word}-{count}-{digest.of_json(nodes).removeprefix(digest.PREFIX)[:6]}"
            sets: dict[str, Any] = {**base.sets, "quantize": {**section, key: nodes}}
            yield replace(base, name=name, sets=sets)


def _nodes(groups: Iterable[GroupEffect]) -> list[str]:
    return list(dict.fromkeys(node.name for group in groups for node in group.nodes))
