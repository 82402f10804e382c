"""What is not even tried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from winml.modelkit.building.compile.refusals import ep_refusal, model_refusal, sharing_refusal
from winml.modelkit.building.compile.result import SourceFacts
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.target import Device
from winml.modelkit.ep import catalog

QNN = catalog.BY_NAME["qnn"]
FINE = SourceFacts(
    digest="sha256:" + "0" * 64, states={}, compiled_for=(), symbolic={}, precision="fp32", inputs=(), outputs=()
)


@pytest.mark.parametrize(
    ("change", "device", "message"),
    [
        ({}, "npu", None),
        ({"compiled_for": ("QNNExecutionProvider",)}, "npu", "already compiled, for QNNExecutionProvider"),
        ({"symbolic": {"batch": ("x[0]",)}}, "npu", r"without fixed sizes: batch \(x\[0\]\)"),
        ({"symbolic": {"batch": ("x[0]",)}}, "gpu", None),
        ({"precision": "bf16"}, "npu", "in bf16"),
        ({"precision": "fp64"}, "npu", "in fp64"),
        ({"precision": "w8a16"}, "npu", None),
    ],
)
def test_models(change: dict[str, Any], device: Device, message: str | None) -> None:
    found = model_refusal("m.onnx", replace(FINE, **change), QNN, device)
    if message is None:
        assert found is None
        return
    assert found is not None
    assert found.hint
    assert found.exit_code == 2
    with pytest.raises(type(found), match=message):
        raise found


def test_every_ep_that_does_not_compile_is_refused_with_those_that_do() -> None:
    for info in catalog.TABLE:
        found = ep_refusal(info)
        assert (found is None) == info.can_compile
        assert found is None or "`qnn`" in (found.hint or "")


@pytest.mark.parametrize(
    ("section", "shares", "message"),
    [
        (CompileSection(), True, None),
        (CompileSection("qairt"), False, "does not put several models into one context"),
        (CompileSection(embed=True), True, "cannot be embedded"),
        (CompileSection(provider_options={"soc_model": "60,87"}), True, "several SoCs"),
        (CompileSection(provider_options={"soc_model": "60"}), True, None),
    ],
)
def test_what_excludes_sharing(section: CompileSection, shares: bool, message: str | None) -> None:
    found = sharing_refusal(section, shares=shares)
    assert (found is None) if message is None else (found is not None and message in found.message)
