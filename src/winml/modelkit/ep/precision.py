"""Words for precision, and the quantize section each of them means on a target."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.target import Device, Target
from winml.modelkit.ep import catalog

AUTO = "auto"
UNQUANTIZED = "fp32"

HALF: tuple[Device, ...] = ("npu", "gpu")
"""Devices that may compute float32 in 16 bits."""


@dataclass(frozen=True)
class Precision:
    """One row of the table."""

    meaning: str
    agreement: float
    """Least cosine of outputs with those of the source, on the target.

    How small a difference is says nothing: outputs may be smaller. Eight bits cost a random transformer 0.03 to 0.06,
    a model that a device computes wrongly lies far below.
    """
    then: tuple[str, ...]
    """What to try where that is not reached, best first; `next_precision` leaves out what is no use on a device."""


PRECISIONS: dict[str, Precision] = {
    "fp32": Precision("as it is, unquantized", 0.9999, ("int16",)),
    "fp16": Precision("float16 weights and arithmetic", 0.99, ("fp32", "int16")),
    "int8": Precision(
        "static 8-bit in the types the target is fastest with", 0.90, ("w8a16", "dynamic", "fp16", "int16", "fp32")
    ),
    "w8a8": Precision("the same as int8", 0.90, ("w8a16", "dynamic", "fp16", "int16", "fp32")),
    "w8a16": Precision("static, 8-bit weights with 16-bit activations", 0.95, ("fp16", "int16", "fp32")),
    "w4a16": Precision(
        "static, 4-bit weights per channel with 16-bit activations", 0.90, ("w8a16", "fp16", "int16", "fp32")
    ),
    "int16": Precision("static, 16-bit weights and activations", 0.99, ("fp16", "fp32")),
    "dynamic": Precision(
        "8-bit weights, activations quantized while running; needs no data", 0.90, ("w8a16", "fp16", "fp32")
    ),
    "int4": Precision("4-bit weights in blocks (MatMulNBits); needs no data", 0.90, ("dynamic", "fp16", "fp32")),
}
"""What `-p` takes besides `auto`: what it means, how near it must stay to its source, and what comes after it."""

_NO_BETTER: dict[Device, tuple[str, ...]] = {
    "npu": ("dynamic", "fp32"),
    "gpu": ("w8a16", "int16", "dynamic"),
    "cpu": ("w8a16", "int16", "fp16"),
}
"""What is not worth trying next: an NPU computes float32 in 16 bits, a CPU has no kernels for 16-bit types."""


def agreement(target: Target, word: str) -> float:
    """The least cosine with the source that a precision must reach on a target."""
    if word == UNQUANTIZED and target.device in HALF:
        return PRECISIONS["fp16"].agreement
    return PRECISIONS[word].agreement


_WORDS = {"bf16": "fp16", "fp64": "fp32", "w16a16": "int16"}
"""Words of the table for what a model computes in, where the two differ."""


def word_for(computed: str) -> str:
    """The row of the table for what a model computes in (`w16a16`); what has none may lose as much as eight bits do."""
    word = _WORDS.get(computed, computed)
    return word if word in PRECISIONS else "int8"


def next_precision(target: Target, word: str, *, data: bool, tried: Collection[str] = ()) -> str | None:
    """What to try after a precision that does not agree with the source; None when nothing is left.

    `data` says whether there is any to calibrate on.
    """
    refused = (word, *tried, *_NO_BETTER[target.device])
    return next((p for p in PRECISIONS[word].then if p not in refused and _possible(target, p, data)), None)


def _possible(target: Target, word: str, data: bool) -> bool:
    info = catalog.BY_NAME[target.ep]
    section = _section(word, info)
    if section is None or section.mode == "fp16":
        return True
    return target.device not in info.unquantized and (data or section.mode != "static")


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
            # Per channel is nearer to the source nearly always; the quantizer looks where it is not.
            per_channel=None if int8.per_channel and int8.rules == "ort" else int8.per_channel,
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
