"""`winml ep options`: the provider options that winml knows, what values they take and who may set them."""

from __future__ import annotations

from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.ep import catalog
from winml.modelkit.ep.catalog import EPInfo, OptionType


@dataclass(frozen=True, kw_only=True)
class OptionInfo:
    """A provider option."""

    name: str
    type: OptionType
    choices: tuple[str, ...]
    low: int | None
    high: int | None
    set_by: Literal["document", "command_line", "nobody"]
    """`document`: also a build folder or config may set it."""
    reason: str | None
    """Why it cannot be set."""


@dataclass(frozen=True, kw_only=True)
class EPOptions:
    """The options of one EP."""

    ep: str
    options: tuple[OptionInfo, ...]


@dataclass(frozen=True, kw_only=True)
class EPOptionsResult:
    schema: Literal["winml/ep/1"] = "winml/ep/1"
    ok: Literal[True] = True
    action: Literal["options"] = "options"
    eps: tuple[EPOptions, ...]
    config_entries: tuple[str, ...]
    """Config entries of the runtime that a document may set."""


def _describe(info: EPInfo) -> EPOptions:
    return EPOptions(
        ep=info.name,
        options=tuple(
            OptionInfo(
                name=name,
                type=option.type,
                choices=option.choices,
                low=option.low,
                high=option.high,
                set_by="nobody" if option.refused is not None else option.trust,
                reason=option.refused,
            )
            for name, option in sorted(info.options.items())
        ),
    )


def list_options(ep: str | None = None) -> EPOptionsResult:
    """The options of one EP, or of every EP that takes some."""
    infos = [info for info in catalog.TABLE if info.options] if ep is None else [catalog.find(ep)]
    return EPOptionsResult(
        eps=tuple(_describe(info) for info in infos), config_entries=tuple(sorted(catalog.DOCUMENT_ENTRIES))
    )
