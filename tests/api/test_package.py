"""What `import winml.modelkit as wk` has, and what it does not import."""

from __future__ import annotations

import ast
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import winml.modelkit as wk

FUNCTIONS = (
    "analyze", "autoconfig", "build", "build_from_config", "compare", "compile", "debug", "evaluate", "export",
    "inspect", "matrix", "optimize", "perf", "perf_generation", "quantize", "quantize_within", "report", "run", "serve",
    "sys", "trace_diff",
)  # fmt: skip
_LIGHT = """
import json, sys
before = set(sys.modules)
import winml.modelkit as wk
by_import = sorted(set(sys.modules) - before)
wk.perf(wk.sample.MODEL, target="cpu", iterations=2, warmup=0, sessions=1)
print(json.dumps([by_import, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


@pytest.fixture(scope="module")
def loaded() -> tuple[set[str], set[str]]:
    """The modules that the import loads, and the packages that a process has after one call."""
    argv = [sys.executable, "-c", _LIGHT]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    by_import, by_call = json.loads(done.stdout)
    return set(by_import), set(by_call)


def test_the_import_loads_the_package_alone(loaded: tuple[set[str], set[str]]) -> None:
    assert {name for name in loaded[0] if name.startswith("winml")} == {"winml", "winml.modelkit"}
    assert not loaded[0] & {"typing", "dataclasses", "pathlib", "numpy", "onnx"}


def test_a_measurement_imports_nothing_heavy(loaded: tuple[set[str], set[str]]) -> None:
    assert not loaded[1] & {"click", "rich", "numpy", "onnx", "onnxruntime", "torch", "pandas"}


def test_every_public_name_is_there_and_shown() -> None:
    assert {*FUNCTIONS, "Session", "errors", "sample"} < set(wk.__all__)
    assert len(set(wk.__all__)) == len(wk.__all__)
    assert dir(wk) == sorted(wk.__all__)
    for name in wk.__all__:
        assert getattr(wk, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'prf'"):
        getattr(wk, "prf")  # noqa: B009 - mypy refuses the attribute, as it does for users


def test_type_checkers_see_the_same_names_from_the_same_modules() -> None:
    source = Path(inspect.getfile(wk))
    (block,) = [node for node in ast.parse(source.read_text(encoding="utf-8")).body if isinstance(node, ast.If)][:1]
    seen = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    tables = {name: f"winml.modelkit.{module}.{name}" for name, module in wk._FROM.items()} | wk._MODULES
    assert seen == tables


def test_no_room_has_the_name_of_a_function_or_class() -> None:
    rooms = {room.name for room in pkgutil.iter_modules(wk.__path__)}
    assert not rooms & ({*wk.__all__} - {"sample"})  # `sample` is the room itself


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_everything_but_models_by_name_and_says_what_it_does(name: str) -> None:
    function = getattr(wk, name)
    assert inspect.getdoc(function)
    parameters = list(inspect.signature(function).parameters.values())
    by_place = [one.name for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert by_place in (
        [],
        ["model"],
        ["models"],
        ["config"],
        ["base", "candidates"],
        ["before", "after"],
        ["run", "other"],
    )
    events = {"on_event", "progress"} & {one.name for one in parameters}
    assert events in (set(), {"on_event", "progress"})
