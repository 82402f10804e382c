"""Fields that the published JSON schemas describe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.json_text import read_json

FOLDER = Path(__file__).parents[1] / "schemas"
_BRANCHES = ("anyOf", "oneOf", "allOf")


@cache
def _read(file: Path) -> dict[str, Any]:
    value: dict[str, Any] = read_json(file)
    return value


def load_schema(name: str) -> dict[str, Any] | None:
    """The schema `winml/NAME/1`, or None when there is none."""
    file = FOLDER / f"{name}-1.json"
    return _read(file) if file.is_file() else None


@dataclass(frozen=True)
class MissingField:
    """The first part of a path that no schema describes, and the names that are there instead."""

    part: str
    known: tuple[str, ...]


@dataclass(frozen=True)
class _Node:
    """A part of a schema, with the document that its references are about."""

    root: dict[str, Any]
    value: dict[str, Any]


def _resolve(node: _Node, reference: str) -> _Node | None:
    name, _, pointer = reference.partition("#")
    root = load_schema(name.removeprefix("urn:winml:").removesuffix(":1")) if name else node.root
    value: Any = root
    for part in pointer.strip("/").split("/") if pointer else ():
        value = value.get(part) if isinstance(value, dict) else None
    return _Node(root, value) if root is not None and isinstance(value, dict) else None


def _alternatives(node: _Node) -> Iterator[_Node]:
    """The node and everything it may be instead: branches, references, items of a list."""
    yield node
    inside = [branch for key in _BRANCHES for branch in node.value.get(key, ())]
    inside += [node.value["items"]] if isinstance(node.value.get("items"), dict) else []
    for value in inside:
        yield from _alternatives(_Node(node.root, value))
    if "$ref" in node.value:
        found = _resolve(node, node.value["$ref"])
        if found is not None:
            yield from _alternatives(found)


def _children(nodes: Iterable[_Node], part: str) -> Iterator[_Node]:
    for node in nodes:
        properties = node.value.get("properties", {})
        more = node.value.get("additionalProperties")
        if part in properties:
            yield _Node(node.root, properties[part])
        elif isinstance(more, dict):
            yield _Node(node.root, more)


def _action_of(node: _Node) -> str | None:
    named: str | None = node.value.get("properties", {}).get("action", {}).get("const")
    return named


def actions(schema: dict[str, Any]) -> frozenset[str]:
    """The actions whose answers a schema describes."""
    return frozenset(name for node in _alternatives(_Node(schema, schema)) if (name := _action_of(node)) is not None)


def missing_field(schema: dict[str, Any], path: str, *, action: str | None = None) -> MissingField | None:
    """What is wrong with a dotted path such as `sessions[].wall_ns`; None when the schema describes all of it."""
    # Alternatives that name no action belong to every action.
    every = _alternatives(_Node(schema, schema))
    nodes = [node for node in every if action is None or _action_of(node) in (None, action)]
    for part in path.replace("[]", "").split("."):
        found = list(_children(nodes, part))
        if not found:
            return MissingField(part, tuple(sorted({n for node in nodes for n in node.value.get("properties", {})})))
        nodes = [node for child in found for node in _alternatives(child)]
    return None
