"""The known family that a model is most like, by what its config holds and not by how it is spelt."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from winml.modelkit.building.export.families import FAMILIES
from winml.modelkit.building.export.loading import library
from winml.modelkit.core.errors import ModelkitError

_LEAST = 0.25
"""Below this share of common keys two configs have nothing to do with one another."""
_EVERY = ("kwargs", "args", "self")


def name_nearest(error: ModelkitError, config: Mapping[str, Any]) -> ModelkitError:
    """The error with the nearest known family in its hint."""
    nearest = find_nearest(config)
    if nearest is None:
        return error
    hint = "; ".join(filter(None, (f"by its config it is most like `{nearest}` models, which export", error.hint)))
    return error.with_message(error.message, hint=hint)


def find_nearest(config: Mapping[str, Any]) -> str | None:
    """The proven family whose config class has the most keys in common; None when none is like it."""
    keys = {name for name in config if not name.startswith("_")} - {"model_type", "architectures"}
    classes = library().models.auto.configuration_auto.CONFIG_MAPPING
    base = set(inspect.signature(library().PretrainedConfig).parameters)
    found: list[tuple[float, str]] = []
    for name, family in FAMILIES.items():
        if not family.proven or name not in classes:
            continue
        known = set(inspect.signature(classes[name]).parameters) - {*base, *_EVERY}
        shared, either = len(known & keys), len(known | (keys - base))
        found.append((shared / max(1, either), name))
    share, name = max(found, default=(0.0, ""))
    return name if share >= _LEAST else None
