"""Words for precision, and the quantize section each of them means on a target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog

AUTO = "auto"
UNQUANTIZED = "fp32"

PRECISIONS: dict[str, str] = {
    "fp32": "as it is, unquantized",
    "fp16": "float16 weights and arithmetic",
    "int8": "static 8-bit in the types the target is fastest with",
    "w8a8": "the same as int8",
    "w8a16": "static, 8-bit weights with 16-bit activations",
    "w4a16": "static, 4-bit weights per channel with 16-bit activations",
    "int16": "static, 16-bit weights and activations",
    "dynamic": "8-bit weights, activations quantized while running; needs no data",
    "int4": "4-bit weights in blocks (MatMulNBits); needs no data",
}
"""What `-p` takes besides `auto`, and what it means."""


def checked(word: str) -> str:
    """A word as it is spelled in the table, or `auto`; raises for any other."""
    folded = word.strip().casefold()
    if folded not in (*PRECISIONS, AUTO):
        raise RequestError(f"unknown precision `{word}`", hint=did_you_mean(word, (*PRECISIONS, AUTO)))
    return folded


def resolve(target: Target, word: str) -> str:
    """A concrete precision for `auto`, and any other word as it is spelled in the table."""
    found = checked(word)
    return catalog.BY_NAME[target.ep].auto_precision.get(target.device, UNQUANTIZED) if found == AUTO else found


def quantize_section(target: Target, word: str, **changes: Any) -> QuantizeSection | None:
    """The section for a precision on a target, with some keys changed; None when nothing is quantized."""
    precision = resolve(target, word)
    info = catalog.BY_NAME[target.ep]
    section = _section(precision, info)
    reason = info.unquantized.get(target.device)
    if section is not None and section.mode != "fp16" and reason is not None:
        raise RequestError(
            f"precision `{precision}` cannot be used on {target}: {reason}", hint="use `-p fp32` or `-p fp16`"
        )
    return None if section is None else replace(section, **changes)


def _section(precision: str, info: catalog.EPInfo) -> QuantizeSection | None:
    int8 = info.int8
    if precision in ("int8", "w8a8"):
        return QuantizeSection(
            mode="static",
            activation_type=int8.activation_type,
            weight_type=int8.weight_type,
            per_channel=int8.per_channel,
            rules=int8.rules,
        )
    if precision == "w8a16":
        return QuantizeSection(mode="static", activation_type="uint16", weight_type="uint8", rules=int8.rules)
    if precision == "w4a16":
        # Per tensor, the QNN EP refuses a 4-bit Conv when the session is created.
        return QuantizeSection(
            mode="static", activation_type="uint16", weight_type="int4", per_channel=True, rules=int8.rules
        )
    if precision == "int16":
        return QuantizeSection(mode="static", activation_type="uint16", weight_type="int16", rules=int8.rules)
    if precision == "dynamic":
        return QuantizeSection(mode="dynamic", weight_type="int8", per_channel=int8.per_channel)
    if precision == "int4":
        return QuantizeSection(mode="weight_only", weight_type="uint4", block_size=32)
    return QuantizeSection(mode="fp16") if precision == "fp16" else None
