"""Reads sections of a config strictly: every key is known, every value has the kind its field declares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, field, fields
from typing import Any, TypeVar

from winml.modelkit.core import values
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean

S = TypeVar("S")
Kind = Callable[[Any, str], Any]
"""Checks a JSON value and returns it as the section holds it; the text names the key in errors."""

_KIND = "kind"
_REQUIRED: Any = MISSING


def _wrong(where: str, must: str, value: Any) -> RequestError:
    return RequestError(f"`{where}` must {must} but got {value!r:.200}")


def flag(value: Any, where: str) -> bool:
    if type(value) is not bool:
        raise _wrong(where, "be true or false", value)
    return value


def text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(where, "be text", value)
    return value


def whole(low: int, high: int | None = None) -> Kind:
    def check(value: Any, where: str) -> int:
        if type(value) is not int:
            raise _wrong(where, "be a whole number", value)
        if value < low:
            raise _wrong(where, f"be at least {low}", value)
        if high is not None and value > high:
            raise _wrong(where, f"be at most {high}", value)
        return value

    return check


def number(low: float, high: float) -> Kind:
    def check(value: Any, where: str) -> float:
        if type(value) not in (int, float) or not low <= value <= high:
            raise _wrong(where, f"be a number from {low:g} to {high:g}", value)
        return float(value)

    return check


def choice(*choices: str) -> Kind:
    def check(value: Any, where: str) -> str:
        if value not in choices:
            known = f"known: {', '.join(choices)}"
            hint = did_you_mean(value, choices) if isinstance(value, str) else known
            raise RequestError(f"`{where}` cannot be {value!r:.200}", hint=hint)
        return str(value)

    return check


def names(value: Any, where: str) -> tuple[str, ...]:
    """A list of texts, each once."""
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v for v in value):
        raise _wrong(where, "be a list of names", value)
    if len(set(value)) != len(value):
        raise _wrong(where, "name everything once", value)
    return tuple(value)


def words(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise _wrong(where, "map names to text", value)
    return dict(value)


def mapping(value: Any, where: str) -> dict[str, Any]:
    """An object whose keys this reader does not know."""
    if not isinstance(value, dict):
        raise _wrong(where, "be an object", value)
    return dict(value)


def sizes(value: Any, where: str) -> dict[str, int]:
    if not isinstance(value, dict) or not all(type(v) is int and v >= 1 for v in value.values()):
        raise _wrong(where, "map names to numbers from 1", value)
    return dict(value)


def each(kind: Kind) -> Kind:
    """A list whose items are all of one kind; an error names the item by its place."""

    def check(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise _wrong(where, "be a list", value)
        return tuple(kind(item, f"{where}[{index}]") for index, item in enumerate(value))

    return check


def optional(kind: Kind) -> Kind:
    """The kind, or null."""

    def check(value: Any, where: str) -> Any:
        return None if value is None else kind(value, where)

    return check


def section(cls: type[S]) -> Kind:
    """A section inside a section."""

    def check(value: Any, where: str) -> S:
        return read(cls, value, where)

    return check


def key(kind: Kind, default: Any = _REQUIRED, *, factory: Callable[[], Any] | None = None) -> Any:
    """A field of a section; without a default the key is required."""
    if factory is not None:
        return field(default_factory=factory, metadata={_KIND: kind})
    return field(default=default, metadata={_KIND: kind})


def _required(entry: Field[Any]) -> bool:
    return entry.default is MISSING and entry.default_factory is MISSING


def read(cls: type[S], value: Any, where: str) -> S:
    """The section in `value`; an error names the first key that does not fit, with `where` before it."""
    if not isinstance(value, dict):
        raise RequestError(f"`{where or 'config'}` must be an object but got {value!r:.200}")
    prefix = f"{where}." if where else ""
    if not any(_KIND in entry.metadata for entry in fields(cls)):  # type: ignore[arg-type]  # sections are dataclasses
        return values.read(cls, value, where)
    entries = {entry.name: entry for entry in fields(cls)}  # type: ignore[arg-type]  # sections are dataclasses
    for name in value:
        if name not in entries:
            raise RequestError(f"unknown key `{prefix}{name:.200}`", hint=did_you_mean(str(name), entries))
    missing = [name for name, entry in entries.items() if _required(entry) and name not in value]
    if missing:
        raise RequestError(f"`{prefix}{missing[0]}` is missing")
    return cls(**{name: entries[name].metadata[_KIND](given, f"{prefix}{name}") for name, given in value.items()})


def plain(value: Any) -> Any:
    """A section as JSON holds it."""
    if hasattr(value, "__dataclass_fields__"):
        return {entry.name: plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value
