"""Holds JSON that others wrote to a declared type: a TypedDict, a dataclass, or what they are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

_PLAIN = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}
_Check = Callable[[Any, Any, str], "str | None"]


def misfit(value: Any, form: Any, where: str) -> str | None:
    """What in a value does not fit a type, with its place in the value; None when all of it fits."""
    if form is Any:
        return None
    if form in (None, *_PLAIN):
        return _plain(value, form or NoneType, where)
    origin = get_origin(form) or form
    check = _CHECKS.get(origin)
    if check is None:
        if not (is_typeddict(form) or is_dataclass(form)):
            raise TypeError(f"{form!r} is no form of JSON")
        check = _object
    return check(value, form, where)


def _plain(value: Any, form: type, where: str) -> str | None:
    # A flag is an int to Python and a whole number is a float to nobody but people.
    kinds = (int, float) if form is float else (form,)
    if type(value) in kinds and (type(value) is not float or math.isfinite(value)):
        return None
    return f"`{where}` must be {_PLAIN[form]} but is {value!r:.80}"


def _literal(value: Any, form: Any, where: str) -> str | None:
    words = get_args(form)
    if any(value == word and type(value) is type(word) for word in words):
        return None
    return f"`{where}` must be one of {', '.join(map(repr, words))} but is {value!r:.80}"


def _union(value: Any, form: Any, where: str) -> str | None:
    problems = [misfit(value, one, where) for one in get_args(form)]
    if None in problems:
        return None
    # The most telling of them is that of the form which is not null.
    return next(problem for one, problem in zip(get_args(form), problems, strict=True) if one is not NoneType)


def _list(value: Any, form: Any, where: str) -> str | None:
    if not isinstance(value, list | tuple):
        return f"`{where}` must be a list but is {value!r:.80}"
    items = get_args(form)
    if (len(items) == 2 and items[1] is Ellipsis) or get_origin(form) is not tuple:
        items = (items[0],) * len(value)
    if len(items) != len(value):
        return f"`{where}` must have {len(items)} items but has {len(value)}"
    found = (misfit(item, one, f"{where}[{i}]") for i, (item, one) in enumerate(zip(value, items, strict=True)))
    return next(filter(None, found), None)


def _mapping(value: Any, form: Any, where: str) -> str | None:
    if not isinstance(value, dict):
        return f"`{where}` must be an object but is {value!r:.80}"
    _, of = get_args(form)
    return next(filter(None, (misfit(item, of, f"{where}.{name}") for name, item in value.items())), None)


def _object(value: Any, form: Any, where: str) -> str | None:
    """An object by its known fields; others may stand beside them."""
    if not isinstance(value, dict):
        return f"`{where}` must be an object but is {value!r:.80}"
    hints, required = _declared(form)
    missing = sorted(required - value.keys())
    if missing:
        return f"`{where}.{missing[0]}` is missing"
    known = ((name, of) for name, of in hints.items() if name in value)
    return next(filter(None, (misfit(value[name], of, f"{where}.{name}") for name, of in known)), None)


@cache
def _declared(form: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """The fields of a form, and those that have to be there."""
    if is_typeddict(form):
        # `__required_keys__` does not see NotRequired where annotations are kept as text.
        written = get_type_hints(form, include_extras=True)
        needed = (
            {name for name, of in written.items() if get_origin(of) is not NotRequired} if form.__total__ else set()
        )
        return get_type_hints(form), frozenset(needed)
    required = {f.name for f in fields(form) if f.default is MISSING and f.default_factory is MISSING}
    return get_type_hints(form), frozenset(required)


_CHECKS: dict[Any, _Check] = {
    Literal: _literal,
    Union: _union,
    UnionType: _union,
    tuple: _list,
    list: _list,
    Sequence: _list,
    dict: _mapping,
    Mapping: _mapping,
}
