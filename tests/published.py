"""The published JSON schemas, as tests hold values to them."""

from __future__ import annotations

import json
from functools import cache

import jsonschema
from referencing import Registry, Resource

from winml.modelkit.core.schemas import FOLDER


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """What checks values of `winml/NAME/1`."""
    stored = [json.loads(p.read_text(encoding="utf-8")) for p in FOLDER.glob("*.json")]
    registry = Registry().with_resources((s["$id"], Resource.from_contents(s)) for s in stored)
    return jsonschema.Draft202012Validator(registry.contents(f"urn:winml:{name}:1"), registry=registry)
