from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.graph.inputs import InputRequest, synthetic
from winml.modelkit.knowledge.experiments.make import make
from winml.modelkit.knowledge.experiments.table import BUILDERS
from winml.modelkit.knowledge.findings import Knowledge
from winml.modelkit.session.session import WinMLSession


def outputs(folder: Path, builder: str, **parameters: Any) -> Any:
    path = folder / f"{builder}{len(list(folder.iterdir()))}.onnx"
    make({"builder": builder, "parameters": parameters, "path": str(path)}, None)
    with WinMLSession(path, target=Target("cpu", "cpu")) as session:
        return session.run(synthetic(session.inputs, InputRequest({}, None, {}, 0)))["y"]


@pytest.mark.parametrize("entry", [e for e in Knowledge() if e.finding.experiment], ids=lambda e: e.finding.id)
def test_every_arm_of_an_experiment_is_a_valid_model(entry: Any, tmp_path: Path) -> None:
    for name in ("base", "candidate"):
        arm = getattr(entry.finding.experiment, name)
        path = tmp_path / f"{name}.onnx"
        make({"builder": arm.builder, "parameters": arm.parameters, "path": str(path)}, None)
        onnx.checker.check_model(path, full_check="fused" not in arm.parameters)


def test_fused_and_plain_convolutions_compute_the_same(tmp_path: Path) -> None:
    plain, fused = (outputs(tmp_path, "conv_net", fused=fused) for fused in (False, True))
    np.testing.assert_allclose(plain, fused, rtol=1e-4)


@pytest.mark.parametrize("residual", [False, True])
def test_types_of_a_quantized_net_change_only_its_rounding(tmp_path: Path, residual: bool) -> None:
    u8, s8 = (outputs(tmp_path, "quantized_conv_net", activations=a, residual=residual) for a in ("uint8", "int8"))
    np.testing.assert_allclose(u8, s8, atol=6 / 255)
    w4 = outputs(tmp_path, "quantized_conv_net", activations="uint16", weights="int4", per_channel=True)
    assert np.isfinite(w4).all()


def test_masks_of_either_kind_mean_the_same(tmp_path: Path) -> None:
    as_bool, as_float = (outputs(tmp_path, "attention", mask=m) for m in ("bool", "float"))
    np.testing.assert_allclose(as_bool, as_float, rtol=1e-3, atol=1e-4)
    looked_up = [outputs(tmp_path, "masked_attention", looked_up_as=k) for k in ("bool", "float")]
    np.testing.assert_allclose(*looked_up, rtol=1e-4, atol=1e-5)


def test_a_parameter_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no parameter `chanels`"):
        make({"builder": "conv_net", "parameters": {"chanels": 3}, "path": str(tmp_path / "m.onnx")}, None)


def test_every_builder_is_used_by_a_finding() -> None:
    used = {arm.builder for f in Knowledge().findings if (e := f.experiment) for arm in (e.base, e.candidate)}
    assert used == set(BUILDERS)
