"""Published schemas follow from the classes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/make_schemas.py"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_schemas", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up.
    import sys

    sys.modules["make_schemas"] = module
    spec.loader.exec_module(module)
    return module


make_schemas = _script()


@pytest.mark.parametrize("name", make_schemas.DOCUMENTS)
def test_a_published_schema_is_that_of_its_classes(name: str) -> None:
    stored = make_schemas.file_of(name).read_text(encoding="utf-8")
    assert stored == make_schemas.schema_text(name), "run `python scripts/make_schemas.py`"
