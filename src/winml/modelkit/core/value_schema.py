"""JSON schemas of value classes, for `schemas/`; `scripts/make_schemas.py` writes them."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from winml.modelkit.core.errors import EXIT_CODES
from winml.modelkit.core.values import (
    AtLeast,
    AtMost,
    Between,
    KnownKeys,
    MoreThan,
    NotEmpty,
    OneOf,
    Ordered,
    Pattern,
    Unique,
    entries,
    json_class,
    to_json,
    writes_itself,
)

Schema = dict[str, Any]
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
DRAFT = "https://json-schema.org/draft/2020-12/schema"


class _Definitions(dict[str, Schema]):
    """The objects of a document by the names of their classes."""

    def __init__(self, *, complete: bool) -> None:
        self.complete = complete
        self._classes: dict[str, Any] = {}

    def reference(self, cls: Any) -> Schema:
        name = str(cls.__name__)
        if self._classes.setdefault(name, cls) is not cls:
            raise TypeError(f"{cls.__module__} and {self._classes[name].__module__} both have a class {name}")
        if name not in self:
            self[name] = {}  # a class may hold itself
            self[name] = _object(cls, self)
        return {"$ref": f"#/$defs/{name}"}


def document_schema(
    name: str, title: str, forms: Sequence[Any], *, failure: bool = False, complete: bool = False
) -> Schema:
    """The schema `winml/NAME/1` of a document: one of several classes, or a failure of the command.

    In what only we write (`complete`), every key that is not omitted is there, also those which have a default.
    """
    definitions = _Definitions(complete=complete)
    branches = [_schema(form, definitions) for form in forms]
    if failure:
        branches.append(_failure(name))
    body: Schema = {"oneOf": branches} if len(branches) > 1 else branches[0]
    head: Schema = {"$schema": DRAFT, "$id": f"urn:winml:{name}:1", "title": title}
    return {**head, **body, **({"$defs": dict(sorted(definitions.items()))} if definitions else {})}


def _failure(name: str) -> Schema:
    error = _object_schema(
        {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "hint": {"type": ["string", "null"]},
            "exit": {"enum": [*EXIT_CODES]},
        }
    )
    return {
        "description": "A failure; further fields stand beside the error.",
        "type": "object",
        "properties": {"schema": {"const": f"winml/{name}/1"}, "ok": {"const": False}, "error": error},
        "required": ["error", "ok", "schema"],
    }


def _object_schema(properties: Schema, required: Sequence[str] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties if required is None else required),
        "additionalProperties": False,
    }


def _schema(form: Any, definitions: _Definitions) -> Schema:
    if form is Any:
        return {}
    if form in (None, *_TYPES):
        return {"type": _TYPES[form or NoneType]}
    origin = get_origin(form) or form
    if origin is Annotated:
        inner, *limits = get_args(form)
        found = {} if isinstance(limits[0], OneOf) else _schema(inner, definitions)
        for limit in limits:
            known = (
                {"properties": _properties(limit.form, definitions)[0]}
                if isinstance(limit, KnownKeys)
                else _limit(limit, found)
            )
            found = {**found, **known}
        return found
    if origin in (Union, UnionType):
        return _union([_schema(one, definitions) for one in get_args(form)])
    if origin is Literal:
        return _choice_schema(get_args(form))
    if origin in (tuple, list, Sequence):
        return _list(origin, get_args(form), definitions)
    if origin in (dict, Mapping):
        of = _schema(get_args(form)[1], definitions)
        return {"type": "object", "additionalProperties": of} if of else {"type": "object"}
    return _class(form, definitions)


def _choice_schema(words: Sequence[Any]) -> Schema:
    return {"const": words[0]} if len(words) == 1 else {"enum": list(words)}


def _class(form: Any, definitions: _Definitions) -> Schema:
    if hasattr(form, "json_schema"):
        own: Schema = form.json_schema()
        return own
    if isinstance(form, type) and issubclass(form, Enum):
        return _choice_schema([member.value for member in form])
    if form is Path:
        return {"type": "string"}
    form = json_class(form) or form
    if "__dataclass_fields__" not in vars(form) or writes_itself(form):
        raise TypeError(f"{form!r} has no schema")
    return definitions.reference(form)


def _object(cls: Any, definitions: _Definitions) -> Schema:
    properties, required = _properties(cls, definitions)
    text = inspect.cleandoc(cls.__doc__ or "").splitlines()
    described = text and not text[0].startswith(f"{cls.__name__}(")
    return {**({"description": text[0]} if described else {}), **_object_schema(properties, required)}


def _properties(cls: Any, definitions: _Definitions) -> tuple[Schema, list[str]]:
    properties: Schema = {}
    required: list[str] = []
    cls = json_class(cls) or cls
    words = descriptions(cls)
    defaults = {one.name: one.default for one in fields(cls)}
    for entry in entries(cls):
        if entry.inline:
            more, required_there = _properties(entry.form, definitions)
            properties.update(more)
            required += required_there
            continue
        found = _schema(entry.form, definitions)
        if entry.attribute in words:
            found = {"description": words[entry.attribute], **found}
        needed = entry.required or (definitions.complete and not entry.omit)
        default = defaults.get(entry.attribute, MISSING)
        if not needed and not entry.omit and default is not MISSING:
            found = {**found, "default": to_json(default)}
        properties[entry.key] = found
        if needed:
            required.append(entry.key)
    return properties, required


@cache
def descriptions(cls: type) -> dict[str, str]:
    """The text below each field of a class and of those it is made from."""
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        if is_dataclass(one):
            found.update(_read_descriptions(one))
    return found


def _read_descriptions(cls: type) -> dict[str, str]:
    getters = {name: vars(cls)[name].fget for name in vars(cls) if isinstance(vars(cls)[name], property)}
    found = {name: " ".join(getter.__doc__.split()) for name, getter in getters.items() if getter.__doc__}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError):  # made without a file
        return found
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    for field, text in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            value = text.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = " ".join(value.value.split())
    return found


def _list(origin: Any, args: tuple[Any, ...], definitions: _Definitions) -> Schema:
    if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        size = len(args)
        items = [_schema(one, definitions) for one in args]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": size, "maxItems": size}
    of = _schema(args[0], definitions)
    return {"type": "array", "items": of} if of else {"type": "array"}


def _union(branches: list[Schema]) -> Schema:
    plain = [one["type"] for one in branches if set(one) == {"type"}]
    if len(plain) == len(branches):
        return {"type": plain}
    words = [_choices_of(one) for one in branches]
    if all(w is not None for w in words):
        return {"enum": [word for group in words for word in group or ()]}
    return {"anyOf": branches}


def _choices_of(schema: Schema) -> list[Any] | None:
    if set(schema) == {"const"}:
        return [schema["const"]]
    if set(schema) == {"enum"}:
        return list(schema["enum"])
    return [None] if schema == {"type": "null"} else None


def _limit(limit: Any, schema: Schema) -> Schema:
    match limit:
        case AtLeast():
            return {"minimum": limit.limit}
        case MoreThan():
            return {"exclusiveMinimum": limit.limit}
        case AtMost():
            return {"maximum": limit.limit}
        case Between():
            return {"minimum": limit.low, "maximum": limit.high}
        case OneOf():
            return {"enum": [*limit.words]}
        case Ordered():
            return {}
        case Pattern():
            return {"pattern": f"^(?:{limit.regex})$"}
        case Unique():
            return {"uniqueItems": True}
        case NotEmpty():
            kind = schema.get("type")
            return {{"string": "minLength", "array": "minItems"}.get(str(kind), "minProperties"): 1}
    raise TypeError(f"{limit!r} is no limit")
