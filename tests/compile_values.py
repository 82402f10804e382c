"""Results of `winml compile` for tests."""

from __future__ import annotations

from typing import Any

from winml.modelkit.building.compile.parity import SAME_EP
from winml.modelkit.building.compile.result import (
    Comparison,
    Comparisons,
    CompileCost,
    Compiled,
    CompiledModel,
    CompileResult,
    ContextBinary,
    ContextFacts,
    ContextFile,
    FailedModel,
    Validation,
)
from winml.modelkit.building.proof.proof import LeastAgreement, Proof
from winml.modelkit.core.target import Target
from winml.modelkit.graph.description import ValueFacts

DIGEST = "sha256:" + "0" * 64
EQUAL = Comparison(passed=True, reason=None, max_abs=0.0, cosine=1.0, sqnr_db=None, limits=SAME_EP)
NEAR = Comparison(passed=True, reason=None, max_abs=0.00123, cosine=0.999987, sqnr_db=45.67, limits=SAME_EP)
PROOF = Proof(status="proven on target", on="qnn/npu", limit=0.95, agreement=LeastAgreement(output="y", cosine=0.98765))
COMPILED = Compiled(
    facts=ContextFacts(
        file=ContextFile(file="m_ctx.onnx", bytes=1, digest=DIGEST),
        ep_context_nodes=2,
        binaries=(ContextBinary(file="m.bin", bytes=2048, digest=DIGEST, nodes=2),),
        embedded_bytes=0,
        cpu_ops={"Erf": 1},
        compatibility={"QNNExecutionProvider": "v2:6"},
        inputs=(ValueFacts("x", "float32", (1, 4)),),
        outputs=(),
    ),
    cost=CompileCost(seconds=1.23, peak_bytes=3 * 2**20, provider_options={}),
    precision="fp32",
    warnings=(),
)


def passed(comparison: Comparison) -> Validation:
    return Validation("passed", None, Comparisons(comparison))


def compiled_model(name: str = "m.onnx", **changes: Any) -> CompiledModel:
    values: dict[str, Any] = {"cached": False, "validation": passed(NEAR), "proof": PROOF, "alone": None, **changes}
    return CompiledModel(model=name, output="m_ctx.onnx", compiled=COMPILED, cpu_nodes=1, **values)


def result(*models: CompiledModel | FailedModel, **changes: Any) -> CompileResult:
    values: dict[str, Any] = {"sharing": None, **changes}
    return CompileResult(
        target=Target("qnn", "npu", simulated=True),
        compiler="ort",
        embed=False,
        provider_options={"soc_model": "60"},
        added_options={},
        libraries={},
        folder="compiled",
        models=models,
        warnings=(),
        **values,
    )
