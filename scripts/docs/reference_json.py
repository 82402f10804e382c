"""Reference pages of the JSON documents, from the published schemas and the table they are made from."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import md_text as md

from winml.modelkit.core.schemas import FOLDER

Schema = dict[str, Any]


@cache
def schemas() -> dict[str, Schema]:
    """Every published schema by the name of its document."""
    return {
        path.stem.removesuffix("-1"): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(FOLDER.glob("*-1.json"))
    }


@cache
def _table() -> ModuleType:
    """`scripts/make_schemas.py`, whose table says which classes a document is made from."""
    path = Path(__file__).parents[1] / "make_schemas.py"
    spec = importlib.util.spec_from_file_location("make_schemas", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_schemas"] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def documents_by_class() -> dict[str, list[str]]:
    """The documents that hold a class as a whole, by the name of the class."""
    found: dict[str, list[str]] = {}
    for name, document in _table().DOCUMENTS.items():
        for cls in document.classes:
            found.setdefault(cls.partition(":")[2], []).append(name)
    return found


def make_page(name: str, links: list[str]) -> str:
    """The page of a document."""
    schema = schemas()[name]
    definitions = schema.get("$defs", {})
    forms = schema.get("oneOf", [schema])
    named = [form["$ref"].rpartition("/")[2] for form in forms if "$ref" in form]
    blocks = [f"# winml/{name}/1", md.escape(schema.get("title", "")) + "."]
    if links:
        blocks.append("\n".join(f"- {line}" for line in links))
    if len(forms) > 1:
        shown = [f"[{one}](#{one.lower()})" for one in named] + [
            "[a failure](#failure)" for form in forms if _is_failure(form)
        ]
        blocks.append(f"One of: {', '.join(shown)}.")
    for one in named:
        blocks += _object_blocks(one, definitions[one])
    for form in forms:
        if "$ref" not in form:
            blocks += _object_blocks("Failure" if _is_failure(form) else "Fields", form)
    for one in definitions:
        if one not in named:
            blocks += _object_blocks(one, definitions[one])
    return md.page(*blocks)


def _is_failure(form: Schema) -> bool:
    return form.get("properties", {}).get("ok", {}).get("const") is False


def _object_blocks(title: str, schema: Schema) -> Iterator[str]:
    yield f"## {title}"
    yield md.escape(schema.get("description", ""))
    if not schema.get("properties"):
        yield _type(schema)
        return
    yield md.table(("field", "type", "meaning"), _rows(schema))


def _rows(schema: Schema, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """The fields of an object; those of an object without a name of its own stand below it."""
    required = set(schema.get("required", ()))
    for key, one in schema["properties"].items():
        name = f"`{prefix}{key}`"
        if one.get("type") == "object" and one.get("properties"):
            yield (name if key in required else f"{name} *(optional)*"), "object", _meaning(one)
            yield from _rows(one, f"{prefix}{key}.")
        else:
            yield (name if key in required else f"{name} *(optional)*"), _type(one), _meaning(one)


def _meaning(schema: Schema) -> str:
    text = md.escape(schema.get("description", ""))
    if "default" in schema and schema["default"] is not None:
        text += f" Default `{json.dumps(schema['default'])}`."
    return text.strip()


_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "minItems": "at least {} items",
    "minLength": "not empty",
    "minProperties": "not empty",
    "uniqueItems": "without repetition",
}


def _type(schema: Schema) -> str:
    """A type in words, with links to objects on the same page."""
    found = _plain_type(schema)
    if "prefixItems" in schema:
        return found
    limits = [text.format(_number(schema[key])) for key, text in _LIMITS.items() if key in schema]
    if "pattern" in schema:
        limits.append(f"matches `{schema['pattern']}`")
    return f"{found} ({', '.join(limits)})" if limits else found


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _plain_type(schema: Schema) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(_type(one) for one in schema[key])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return _list_type(schema)
    if kind == "object":
        return _object_type(schema)
    return str(kind or "anything")


def _list_type(schema: Schema) -> str:
    if "prefixItems" in schema:
        return f"list of {', '.join(_type(one) for one in schema['prefixItems'])}"
    return f"list of {_type(schema['items'])}" if schema.get("items") else "list"


def _object_type(schema: Schema) -> str:
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return f"object of {_type(values)}" if values else "object"
    names = schema.get("properties", {})
    return f"object with {', '.join(f'`{one}`' for one in names)}" if names else "object"
