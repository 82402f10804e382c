"""Descriptions of compiled models."""

from __future__ import annotations

from dataclasses import replace

import pytest

from winml.modelkit.building.compile.report import compare_sizes, describe_model
from winml.modelkit.building.compile.result import (
    CompileCost,
    Compiled,
    ContextBinary,
    ContextFacts,
    ContextFile,
    ReadContext,
    SharedBinary,
    SourceFacts,
)
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.graph.description import ValueFacts

DIGEST = "sha256:" + "0" * 64
VALUE = ValueFacts("x", "float32", (1, 4))
SOURCE = SourceFacts(
    digest=DIGEST, states={}, compiled_for=(), symbolic={}, precision="fp32", inputs=(VALUE,), outputs=(VALUE,)
)
COST = CompileCost(seconds=1.0, peak_bytes=None, provider_options={})


def _facts(name: str, **binaries: int) -> ContextFacts:
    return ContextFacts(
        file=ContextFile(file=name, bytes=1, digest=DIGEST),
        ep_context_nodes=1,
        binaries=tuple(ContextBinary(file=f, bytes=n, digest=DIGEST, nodes=1) for f, n in binaries.items()),
        embedded_bytes=0,
        cpu_ops={},
        compatibility={},
        inputs=(VALUE,),
        outputs=(VALUE,),
    )


FOUND = _facts("m.onnx", a=10)
BARE = _facts("m.onnx")


def _warnings(found: ContextFacts, section: CompileSection | None = None) -> tuple[str, ...]:
    context = ReadContext(facts=found, missing=())
    return describe_model("m.onnx", SOURCE, context, COST, section or CompileSection()).warnings


def test_a_model_that_names_a_missing_binary_is_no_result() -> None:
    with pytest.raises(RunFailedError, match="wrote no `a.bin`"):
        describe_model("m.onnx", SOURCE, ReadContext(facts=FOUND, missing=("a.bin",)), COST, CompileSection())


def test_odd_results_are_warned_about() -> None:
    assert _warnings(FOUND) == ()
    assert "no binary was written" in _warnings(BARE)[0]
    assert _warnings(BARE, CompileSection(embed=True)) == ()
    other = replace(FOUND, inputs=(replace(VALUE, dtype="uint8"),))
    assert _warnings(other) == ("the inputs differ from those of the source: x uint8[1, 4]",)


def _made(name: str, **binaries: int) -> Compiled:
    return Compiled(facts=_facts(name, **binaries), cost=COST, precision="fp32", warnings=())


def test_sharing_is_proved_by_who_points_where() -> None:
    found = compare_sizes([_made("a", one=60), _made("b", one=60)], [_made("a", a=50), _made("b", b=50)])
    assert found.shared is True
    assert found.binaries == (SharedBinary(file="one", bytes=60, models=("a", "b")),)
    assert (found.bytes, found.bytes_alone, found.saved_pct) == (60, 100, pytest.approx(40.0))
    assert found.peak_bytes is None


def test_models_with_binaries_of_their_own_share_nothing() -> None:
    found = compare_sizes([_made("a", a=50), _made("b", b=50)], [_made("a", a=50), _made("b", b=50)])
    assert (found.shared, found.saved_pct) == (False, 0.0)
