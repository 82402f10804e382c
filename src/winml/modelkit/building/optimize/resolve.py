"""From the options of a user to the passes that run, in order; a pure function that imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable

from winml.modelkit.building.optimize import table
from winml.modelkit.building.optimize.support import find_unsupported
from winml.modelkit.building.optimize.table import Pass
from winml.modelkit.core.config import OptimizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.target import Target

LOWEST_OPSET = 7
"""ONNX Runtime reads nothing older."""


def resolve(
    *,
    level: str | None = None,
    enable: Iterable[str] = (),
    disable: Iterable[str] = (),
    target: Target | None = None,
    opset: int | None = None,
    allow_unsupported: bool = False,
) -> OptimizeSection:
    """The section behind the options; without a target it is good for every one.

    A level skips passes that may make operators the target does not take; one that was requested by name is an error.
    """
    wanted = {table.find(name).name for name in enable}
    unwanted = {table.find(name).name for name in disable}
    both = wanted & unwanted
    if both:
        raise RequestError(f"pass `{min(both)}` is both enabled and disabled")
    if opset is not None and opset < LOWEST_OPSET:
        raise RequestError(f"opset must be at least {LOWEST_OPSET} but got {opset}")
    checked = None if allow_unsupported else target
    chosen = {row.name for row in _of_level(level, target) if not find_unsupported(checked, row.produces)}
    for name in sorted(wanted):
        never = find_unsupported(checked, table.BY_NAME[name].produces)
        if never:
            raise RequestError(
                f"pass `{name}` makes {', '.join(f'`{op}`' for op in never)}, which {target} is not known to support",
                hint="drop the pass, or allow it with `--allow-unsupported`",
            )
    names = (chosen | wanted) - unwanted
    return OptimizeSection(passes=tuple(row.name for row in table.PASSES if row.name in names), opset=opset)


def _of_level(level: str | None, target: Target | None) -> tuple[Pass, ...]:
    name = table.DEFAULT_LEVEL if level is None else level
    if name not in table.LEVELS:
        raise RequestError(f"unknown level `{name}`", hint=did_you_mean(name, table.LEVELS))
    levels = table.LEVELS[name]
    extra = table.TARGET_PASSES.get(str(target), ()) if levels else ()
    return tuple(row for row in table.PASSES if row.level in levels or row.name in extra)
