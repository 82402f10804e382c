"""Whether a section suits its target; light enough for a command to check before the work starts."""

from __future__ import annotations

from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target

_FAST_ON_CPU = ("uint8", "int8")


def check(section: QuantizeSection, target: Target) -> list[str]:
    """Warnings about the section on this target; raises when the target cannot open the result at all."""
    is_4_bit = section.mode == "static" and (section.weight_type or "").endswith("int4")
    if target.ep == "qnn" and is_4_bit and not section.per_channel:
        raise RequestError(
            "4-bit weights per tensor cannot be used on qnn: it refuses the model when the session is created",
            hint="add `--per-channel`",
        )
    if target.ep != "cpu":
        return []
    return [text for text in (_slow_pair(section), _slow_float16(section), _wide(section)) if text is not None]


def _slow_pair(section: QuantizeSection) -> str | None:
    pair = section.activation_type, section.weight_type
    if section.mode != "static" or pair == _FAST_ON_CPU or not all((kind or "").endswith("int8") for kind in pair):
        return None
    return (
        f"{pair[0]} activations with {pair[1]} weights are slow on x86-64 processors: the runtime's fast kernels take "
        "uint8 activations with int8 weights; `-p int8` chooses them"
    )


def _slow_float16(section: QuantizeSection) -> str | None:
    if section.mode != "fp16":
        return None
    return "on the CPU float16 saves space, not time: the runtime computes most operators in float32 anyway"


def _wide(section: QuantizeSection) -> str | None:
    if section.mode != "static" or not (section.activation_type or "").endswith("16"):
        return None
    return "on the CPU 16-bit activations are slower than float32: they are dequantized around every operator"
