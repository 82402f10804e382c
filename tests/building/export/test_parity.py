"""Exports are compared with padding and without, and outputs keep their names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.building.export import samples
from winml.modelkit.core.config import ExportSection, InputSection
from winml.modelkit.core.errors import CheckFailed

# Exporters run in the process of the test here, with the warnings of libraries.
pytestmark = [pytest.mark.hf, pytest.mark.xdist_group("hf"), pytest.mark.filterwarnings("ignore")]

SECTION = ExportSection(
    task="feature-extraction",
    opset=18,
    inputs=(
        InputSection("x", "float32", ("batch", "sequence"), -1, 1),
        InputSection("mask", "int64", ("batch", "sequence"), 0, 1, "padding"),
    ),
    sizes={"batch": 2, "sequence": 6},
)


def make_part(forward: Any, attention: str = "sdpa") -> Any:
    """A part with this forward, and a model that can be told which attention it has."""
    import torch
    from transformers import PretrainedConfig

    from winml.modelkit.building.export.parts import Part

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.config = PretrainedConfig()
            self.set_attn_implementation(attention)

        def set_attn_implementation(self, name: str) -> None:
            self.config._attn_implementation_internal = name

    class Small(Part):
        def forward(self, x: Any, mask: Any) -> dict[str, Any]:
            return dict(forward(self.config._attn_implementation, x, mask))

    return Small(Model()).eval()


def test_masks_have_padding_or_are_ones_alone() -> None:
    padded = samples.make_samples(SECTION, SECTION.sizes, seed=1)
    plain = samples.make_samples(SECTION, SECTION.sizes, seed=1, padded=False)
    assert padded["mask"].tolist() == [[1] * 6, [1, 1, 1, 1, 0, 0]]
    assert plain["mask"].tolist() == [[1] * 6] * 2
    assert (padded["x"] == plain["x"]).all()


def test_an_export_that_is_right_with_padding_alone_is_refused(tmp_path: Path) -> None:
    from winml.modelkit.building.export import parity, tracing
    from winml.modelkit.graph import files

    def forward(_: str, x: Any, mask: Any) -> dict[str, Any]:
        # A tracer follows one of the two ways.
        return {"y": x * 2 if mask.bool().all() else x * mask}

    import torch

    part = make_part(forward)
    arrays = samples.make_samples(SECTION, SECTION.sizes, seed=0)
    tensors = {name: torch.from_numpy(value) for name, value in arrays.items()}
    model = tracing.trace_part(part, tensors, replace(SECTION, exporter="legacy"))
    files.save(model, tmp_path / "model.onnx")
    answers = parity.answer(part, SECTION)
    assert [(answer.padded, answer.warning) for answer in answers] == [(True, None), (True, None), (False, None)]
    with pytest.raises(CheckFailed, match=r"at batch 2, sequence 6 without padding") as raised:
        parity.check_parity(tmp_path / "model.onnx", answers, SECTION)
    assert [row.padded for row in raised.value.result.parity.outputs] == [True, True, False]


def test_where_the_attentions_of_pytorch_differ_without_padding_eager_decides() -> None:
    from winml.modelkit.building.export import parity

    def forward(attention: str, x: Any, mask: Any) -> dict[str, Any]:
        return {"y": x * 2 if attention == "sdpa" and mask.bool().all() else x * mask}

    part = make_part(forward)
    *_, last = parity.answer(part, SECTION)
    assert (last.outputs["y"] == last.inputs["x"]).all()
    assert last.warning is not None
    assert "`sdpa` and `eager`" in last.warning
    assert part.config._attn_implementation == "sdpa"


@pytest.mark.slow
def test_outputs_within_outputs_keep_their_names() -> None:
    import torch

    from winml.modelkit.building.export import tracing

    def forward(_: str, x: Any, mask: Any) -> dict[str, Any]:
        return {"y": x + 1, "text_model_output.last_hidden_state": x * mask}

    part = make_part(forward)
    arrays = samples.make_samples(SECTION, SECTION.sizes, seed=0)
    model = tracing.trace_part(part, {name: torch.from_numpy(value) for name, value in arrays.items()}, SECTION)
    assert [value.name for value in model.graph.output] == ["y", "text_model_output.last_hidden_state"]
