"""Every pass acts on its own graph, says what it makes, and leaves outputs as they were."""

from __future__ import annotations

import pytest

import pass_zoo
from winml.modelkit.building.optimize import verify
from winml.modelkit.building.optimize.apply import Runner
from winml.modelkit.building.optimize.table import BY_NAME, Pass, available
from winml.modelkit.building.optimize.workspace import Workspace

EVERY = pytest.mark.parametrize("row", available(), ids=lambda row: row.name)


@EVERY
def test_changes_its_graph_and_not_its_outputs(row: Pass, workspace: Workspace, runner: Runner) -> None:
    version = workspace.open(pass_zoo.FIRES[row.name])
    made = runner.apply(row, version)
    assert made is not None
    new = set(made.ops) - set(version.ops)
    assert new <= set(row.produces)
    reference = verify.reference(version.path, seed=1, dims={})
    assert reference.reason is None
    tolerance = verify.APPROXIMATION if row.approximate else verify.ROUNDING
    assert verify.compare(reference, made.path, tolerance=tolerance).status == "passed"


@EVERY
def test_gives_the_same_bytes_every_time(row: Pass, workspace: Workspace) -> None:
    version = workspace.open(pass_zoo.FIRES[row.name])
    first, second = (Runner(workspace).apply(row, version) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.path.read_bytes() == second.path.read_bytes()


@pytest.mark.parametrize("row", [row for row in available() if row.kind == "ort"], ids=lambda row: row.name)
def test_the_others_leave_the_graph_of_a_transformer_alone(row: Pass, workspace: Workspace, runner: Runner) -> None:
    """A name that ONNX Runtime does not know is ignored by it: then everything would act, whatever is asked for."""
    other = "relu_clip_fusion" if row.name != "relu_clip_fusion" else "not_where_fusion"
    assert runner.apply(BY_NAME[other], workspace.open(pass_zoo.FIRES[row.name])) is None


def test_a_fusion_that_needs_another_acts_after_it(workspace: Workspace, runner: Runner) -> None:
    version = workspace.open(pass_zoo.transformer())
    fusion = BY_NAME["skip_layer_norm_fusion"]
    assert runner.apply(fusion, version) is None
    made = runner.alone(fusion, version)
    assert made is not None
    assert made.ops["com.microsoft:SkipLayerNormalization"] == 3


def test_float16_graphs_get_no_casts(workspace: Workspace, runner: Runner) -> None:
    version = workspace.open(
        pass_zoo.graph(
            "(float16[1,4] x) => (float16[1,4] y) { a = Identity(x)  b = Relu(a)  y = Sigmoid(b) }"
        )
    )  # fmt: skip
    made = runner.apply(BY_NAME["identity_elimination"], version)
    assert made is not None
    assert made.ops == {"Relu": 1, "Sigmoid": 1}


@pytest.mark.parametrize("name", pass_zoo.STAYS)
def test_what_is_called_unavailable_does_not_act(name: str, workspace: Workspace, runner: Runner) -> None:
    assert BY_NAME[name].unavailable is not None
    assert runner.apply(BY_NAME[name], workspace.open(pass_zoo.STAYS[name])) is None
