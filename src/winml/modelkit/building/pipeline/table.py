"""The table of stages: the name of each, its worker operation and its file in a build folder."""

from __future__ import annotations

from winml.modelkit.building.compile import table as compile_table
from winml.modelkit.building.export import table as export
from winml.modelkit.building.optimize import table as optimize
from winml.modelkit.building.quantize import table as quantize
from winml.modelkit.core.config import RANDOM
from winml.modelkit.core.dataclass import dataclass


@dataclass(frozen=True)
class StageInfo:
    """One stage."""

    name: str
    version: int
    """Raised when the same section gives another result."""
    libraries: tuple[str, ...]
    """Distributions whose versions change its result."""
    operation: str
    """What a worker is asked for."""
    file: str


def libraries_of_data(source: str) -> tuple[str, ...]:
    """Distributions that may decide what a model gets from data: images are resized, texts are tokenized."""
    return () if source == RANDOM or source.lower().endswith(".npz") else ("pillow", "tokenizers")


EXPORT = StageInfo("export", export.STAGE_VERSION, export.LIBRARIES, "stages.export", "export.onnx")
OPTIMIZE = StageInfo("optimize", optimize.STAGE_VERSION, optimize.LIBRARIES, "stages.optimize", "optimized.onnx")
QUANTIZE = StageInfo("quantize", quantize.STAGE_VERSION, quantize.LIBRARIES, "stages.quantize", "quantized.onnx")

COMPILE = StageInfo("compile", compile_table.STAGE_VERSION, (), "compile.model", "compiled.onnx")
"""Several models may go into one compilation, so that `stages/compile` runs it; its libraries are those of the EP."""
