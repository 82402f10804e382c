"""Every pass over a corpus: outputs stay what they were, and nothing but our own errors is raised.

The corpus: node models of onnx.backend.test and the exported operators and small nets that onnx ships, every so many of
them so that this takes seconds, and small nets of our own. WINML_TEST_CORPUS=full takes all of them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import onnx
import pytest
from onnx.backend.test.loader import load_model_tests

import model_zoo
import pass_zoo
from winml.modelkit import sample
from winml.modelkit.building.optimize import verify
from winml.modelkit.building.optimize.apply import Runner
from winml.modelkit.building.optimize.table import Pass, available
from winml.modelkit.building.optimize.verify import Reference
from winml.modelkit.building.optimize.workspace import Version, Workspace
from winml.modelkit.core.errors import ModelkitError, RunFailedError
from winml.modelkit.graph import files

PARTS = 6
FULL = os.environ.get("WINML_TEST_CORPUS") == "full"
NODE_STEP, STORED_STEP = (1, 1) if FULL else (25, 4)


def _node_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases compute infinities on purpose
        cases = [case for case in load_model_tests(kind="node") if case.model is not None]
    # onnx lists them in the order of imports, some of which another test may have done before.
    cases.sort(key=lambda case: case.name)
    yield from ((case.name, case.model) for case in cases[::NODE_STEP])


def _stored_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        for case in load_model_tests(kind=kind)[::STORED_STEP]:
            yield case.name, files.load(Path(case.model_dir) / "model.onnx")


def _nets() -> Iterator[tuple[str, onnx.ModelProto]]:
    yield "conv net", model_zoo.conv_net()
    yield "fused conv net", model_zoo.conv_net(fused=True)
    yield "embedding", model_zoo.embedding()
    yield "transformer", pass_zoo.transformer()
    yield "transformer of fused norms", pass_zoo.transformer(fused_norms=True)
    yield "transformer without a mask", pass_zoo.transformer(masked=False, opset=17)
    yield "digits", files.load(sample.MODEL)


@cache
def corpus() -> list[tuple[str, onnx.ModelProto]]:
    return [*_nets(), *_stored_models(), *_node_models()]


def _fault(row: Pass, runner: Runner, version: Version, reference: Reference) -> str | None:
    """What is wrong with a pass on a model, if anything; a failure in our own words is an answer."""
    try:
        made = runner.apply(row, version)
    except RunFailedError:
        return None
    if made is None or reference.reason is not None:
        return None
    tolerance = verify.APPROXIMATION if row.approximate else verify.ROUNDING
    try:
        found = verify.compare(reference, made.path, tolerance=tolerance)
    except ModelkitError as error:
        return f"the runtime refuses the result: {error.message}"
    return None if found.status == "passed" else f"outputs differ: {found}"


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(0 if FULL else 600)
def test_no_pass_changes_outputs(part: int, tmp_path: Path) -> None:
    faults, compared = [], 0
    for number, (name, model) in enumerate(corpus()[part::PARTS]):
        folder = tmp_path / str(number)
        folder.mkdir()
        workspace = Workspace(folder)
        version = workspace.open(model)
        reference = verify.reference(version.path, seed=0, dims={})
        compared += reference.reason is None
        runner = Runner(workspace)
        for row in available():
            fault = _fault(row, runner, version, reference)
            if fault is not None:
                faults.append(f"{row.name} on {name}: {fault}")
    assert not faults
    assert compared > 5  # models of opsets and types that the runtime lacks have no outputs to compare


def test_the_corpus_is_broad() -> None:
    ops = {node.op_type for _, model in corpus() for node in model.graph.node}
    assert len(corpus()) >= 100
    assert len(ops) >= 80
