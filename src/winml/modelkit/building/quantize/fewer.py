"""Fewer operators in 8 bits, where all of them together agree poorly with the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from winml.modelkit.core.config import QuantizeSection

if TYPE_CHECKING:
    from winml.modelkit.building.quantize.result import Fidelity
    from winml.modelkit.building.quantize.select import NodeSelection

POOR_COSINE = 0.99
"""Below this the agreement of a model with its original is poor."""
PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
FOLLOWERS = ("Clip", "Flatten", "MaxPool", "Relu", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that lose nothing in the 8 bits of a product's result."""
LEFT = "the outputs agree better without it"


def is_open(section: QuantizeSection) -> bool:
    """Whether a section leaves the choice of operators open: static for the CPU, nothing named."""
    named = section.op_types is not None or section.nodes is not None
    narrow = section.activation_type in ("uint8", "int8")
    excluded = section.exclude_op_types or section.exclude_nodes
    return section.mode == "static" and section.rules == "ort" and narrow and not (named or excluded)


def products_only(selection: NodeSelection, operators: Mapping[str, str]) -> NodeSelection:
    """The selection with products and what follows them alone."""
    others = (name for name in selection.chosen if operators[name] not in (*PRODUCTS, *FOLLOWERS))
    return selection.without(dict.fromkeys(others, LEFT))


def least_cosine(compared: Fidelity) -> float | None:
    """The cosine of the output that agrees least; None where that was not measured."""
    found = [1.0 if output.identical else output.cosine or 0.0 for output in compared.outputs]
    return min(found) if compared.status == "measured" else None


def is_better(fewer: float | None, all_of_them: float) -> bool:
    """Whether fewer agree better; where agreement is poor it comes before speed, so no margin is required."""
    return fewer is not None and fewer > all_of_them


def note(fewer: float | None, all_of_them: float) -> str:
    """What was chosen and by which numbers."""
    other = "cannot be run" if fewer is None else f"{fewer:.4f}"
    if is_better(fewer, all_of_them):
        return (
            f"only products and what follows them are quantized: a cosine of {other} with the original, against "
            f"{all_of_them:.4f} with all operators; `--op-types` sets them"
        )
    return (
        f"all operators are quantized: a cosine of {all_of_them:.4f} with the original; products alone are no better "
        f"({other})"
    )
