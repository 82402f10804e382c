"""What every compiler of the table must do."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from winml.modelkit.building.compile.base import CompileJob, Compiler, CompileTools
from winml.modelkit.building.compile.result import CompileCost
from winml.modelkit.building.compile.table import ALIASES, COMPILERS, find
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import ModelkitError, RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog
from winml.modelkit.graph.context import context_facts
from winml.modelkit.worker.client import Worker

NPU = Target("qnn", "npu", simulated=True)
pytestmark = pytest.mark.qnn


@pytest.fixture(params=COMPILERS.values(), ids=lambda c: c.name)
def compiler(request: pytest.FixtureRequest) -> Compiler:
    found: Compiler = request.param
    return found


def _job(compiler: Compiler, model: Path, output: Path, sdk: Path, **section: object) -> CompileJob:
    return CompileJob(model, output, NPU, CompileSection(compiler.name, **section), tools=CompileTools(sdk))  # type: ignore[arg-type]


def test_its_name_is_its_key_and_every_alias_leads_to_one() -> None:
    assert [c.name for c in COMPILERS.values()] == list(COMPILERS) == ["ort", "ort_jit", "qairt"]
    assert all(find(alias) is COMPILERS[name] for alias, name in ALIASES.items())
    with pytest.raises(RequestError, match="unknown compiler `ort_git`") as caught:
        find("ort_git")
    assert "`ort_jit`" in (caught.value.hint or "")


def test_it_can_say_for_every_ep_whether_it_is_here(compiler: Compiler, sdk: Path) -> None:
    for info in catalog.TABLE:
        missing = compiler.missing(info, CompileTools())
        assert missing is None or missing.reason
    assert compiler.missing(catalog.BY_NAME["qnn"], CompileTools(sdk)) is None


@pytest.mark.parametrize("embed", [False, True])
def test_it_writes_a_compiled_model_that_names_only_files_beside_it(
    compiler: Compiler, zoo: Path, tmp_path: Path, sdk: Path, embed: bool
) -> None:
    with Worker() as worker:
        job = _job(compiler, zoo / "conv.onnx", tmp_path / "m.onnx", sdk, embed=embed)
        cost = worker.ask(CompileCost, "compile.model", job)
    assert cost.seconds > 0
    assert (cost.peak_bytes or 0) > 0
    found = context_facts(tmp_path / "m.onnx")
    assert (found.nodes, found.missing) == (1, ())
    assert {p.name for p in tmp_path.iterdir()} == {"m.onnx", *found.binaries}
    assert bool(found.binaries) != embed
    assert bool(found.embedded_bytes) == embed
    source = onnx.load(zoo / "conv.onnx").graph
    made = onnx.load(tmp_path / "m.onnx", load_external_data=False).graph
    assert [v.name for v in made.input] == [v.name for v in source.input]
    assert [v.name for v in made.output] == [v.name for v in source.output]


def test_what_it_cannot_compile_is_our_error_and_leaves_no_model(compiler: Compiler, tmp_path: Path, sdk: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    (tmp_path / "out").mkdir()
    with Worker() as worker, pytest.raises(ModelkitError):
        worker.ask(CompileCost, "compile.model", _job(compiler, broken, tmp_path / "out" / "m.onnx", sdk))
    assert list((tmp_path / "out").glob("*.onnx")) == []
