"""Precisions: one row of one table has everything about each.

A new scheme is a row: its section on an EP, how near it must stay to its source, what follows it, what a search may try
of it. Help, errors, searches, reviews and proofs read the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from typing import Any

from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.target import Device, Target
from winml.modelkit.ep import catalog
from winml.modelkit.ep.catalog import Int8

AUTO = "auto"
UNQUANTIZED = "fp32"

HALF: tuple[Device, ...] = ("npu", "gpu")
"""Devices that may compute float32 in 16 bits."""


@dataclass(frozen=True)
class Scheme:
    """A level of the knob `quantize.scheme` of a search."""

    rank: int
    """Its place among the levels of all precisions."""
    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the section that the precision has on the target."""


@dataclass(frozen=True, kw_only=True)
class Precision:
    """One row of the table."""

    meaning: str
    section: Callable[[Int8], QuantizeSection | None]
    """The section on an EP that prefers these 8-bit types; None leaves the model as it is."""
    agreement: float
    """Least cosine of outputs with those of the source, on the target.

    How small a difference is says nothing: outputs may be smaller. Eight bits cost a random transformer 0.03 to 0.06,
    a model that a device computes wrongly lies far below.
    """
    then: tuple[str, ...]
    """What to try where that is not reached, best first; `next_precision` skips what is no use on a device."""
    useless_on: tuple[Device, ...] = ()
    """Devices on which it is not worth trying next: an NPU computes float32 in 16 bits, a CPU has no kernels for 16-bit
    types."""
    computed: tuple[str, ...] = ()
    """Other names for what its models compute in (`graph/precision.py`); compiled ones are held to its agreement."""
    schemes: tuple[Scheme, ...] = ()
    same_as: str | None = None
    """The row that this one is another name for."""

    @property
    def mode(self) -> str | None:
        """How it quantizes, on every EP; None when it does not."""
        section = self.section(Int8())
        return None if section is None else section.mode

    @property
    def needs_data(self) -> bool:
        return self.mode == "static"


def _int8(types: Int8) -> QuantizeSection:
    return QuantizeSection(
        mode="static",
        activation_type=types.activation_type,
        weight_type=types.weight_type,
        # Per channel is nearer to the source nearly always; the quantizer looks where it is not.
        per_channel=None if types.per_channel and types.rules == "ort" else types.per_channel,
        rules=types.rules,
    )


PRECISIONS: dict[str, Precision] = {
    "fp32": Precision(
        meaning="as it is, unquantized",
        section=lambda types: None,
        agreement=0.9999,
        then=("int16",),
        useless_on=("npu",),
        computed=("fp64",),
    ),
    "fp16": Precision(
        meaning="float16 weights and arithmetic",
        section=lambda types: QuantizeSection(mode="fp16"),
        agreement=0.99,
        then=("fp32", "int16"),
        useless_on=("cpu",),
        computed=("bf16",),
        schemes=(Scheme(4, "fp16"),),
    ),
    "int8": Precision(
        meaning="static 8-bit in the types the target is fastest with",
        section=_int8,
        agreement=0.90,
        then=("w8a16", "dynamic", "fp16", "int16", "fp32"),
        schemes=(
            Scheme(1, "int8"),
            Scheme(5, "u8u8", {"activation_type": "uint8", "weight_type": "uint8", "per_channel": False}),
            Scheme(6, "s8s8", {"activation_type": "int8", "weight_type": "int8"}),
        ),
    ),
    "w8a8": Precision(
        meaning="the same as int8",
        section=_int8,
        agreement=0.90,
        then=("w8a16", "dynamic", "fp16", "int16", "fp32"),
        same_as="int8",
    ),
    "w8a16": Precision(
        meaning="static, 8-bit weights with 16-bit activations",
        section=lambda types: QuantizeSection(
            mode="static", activation_type="uint16", weight_type="uint8", rules=types.rules
        ),
        agreement=0.95,
        then=("fp16", "int16", "fp32"),
        useless_on=("gpu", "cpu"),
        schemes=(Scheme(3, "w8a16"),),
    ),
    "w4a16": Precision(
        meaning="static, 4-bit weights per channel with 16-bit activations",
        # Per tensor, the QNN EP refuses a 4-bit Conv when the session is created.
        section=lambda types: QuantizeSection(
            mode="static", activation_type="uint16", weight_type="int4", per_channel=True, rules=types.rules
        ),
        agreement=0.90,
        then=("w8a16", "fp16", "int16", "fp32"),
        schemes=(Scheme(8, "w4a16"),),
    ),
    "int16": Precision(
        meaning="static, 16-bit weights and activations",
        section=lambda types: QuantizeSection(
            mode="static", activation_type="uint16", weight_type="int16", rules=types.rules
        ),
        agreement=0.99,
        then=("fp16", "fp32"),
        useless_on=("gpu", "cpu"),
        computed=("w16a16",),
        schemes=(Scheme(9, "int16"),),
    ),
    "dynamic": Precision(
        meaning="8-bit weights, activations quantized while running; needs no data",
        section=lambda types: QuantizeSection(mode="dynamic", weight_type="int8", per_channel=types.per_channel),
        agreement=0.90,
        then=("w8a16", "fp16", "fp32"),
        useless_on=("npu", "gpu"),
        schemes=(Scheme(2, "dynamic"),),
    ),
    "int4": Precision(
        meaning="4-bit weights in blocks (MatMulNBits); needs no data",
        # In float32 a step of a decoder takes 4.7 times as long on the CPU; the builder of onnxruntime-genai chooses
        # int8 there, too.
        section=lambda types: QuantizeSection(
            mode="weight_only", weight_type="uint4", block_size=32, block_compute="int8"
        ),
        agreement=0.90,
        then=("dynamic", "fp16", "fp32"),
        schemes=(Scheme(7, "int4"),),
    ),
}
"""What `-p` takes, next to `auto`."""


def precision_names(*, data: bool | None = None, quantized: bool = False) -> tuple[str, ...]:
    """Names to show, each precision once: all, those that need data or do not, or those that change a model."""
    return tuple(
        name
        for name, row in PRECISIONS.items()
        if row.same_as is None and (data is None or row.needs_data == data) and (not quantized or row.mode is not None)
    )


def schemes() -> tuple[tuple[str, Scheme], ...]:
    """What a search may try, in its order, with the precision of each."""
    found = [(name, scheme) for name, row in PRECISIONS.items() for scheme in row.schemes]
    return tuple(sorted(found, key=lambda entry: entry[1].rank))


def agreement(target: Target, name: str) -> float:
    """The least cosine with the source that a precision must reach on a target."""
    if name == UNQUANTIZED and target.device in HALF:
        return PRECISIONS["fp16"].agreement
    return PRECISIONS[name].agreement


def precision_for(computed: str) -> str:
    """The row of the table for what a model computes in (`w16a16`); what has none may lose as much as eight bits do."""
    return next((name for name, row in PRECISIONS.items() if computed in (name, *row.computed)), "int8")


def fits(name: str, *, quantized: bool, float_types: Collection[str]) -> bool:
    """Whether the number types of a file are those of a precision; of an unknown one, only that it is quantized."""
    row = PRECISIONS.get(name)
    if row is None or row.mode not in (None, "fp16"):
        return quantized
    others = set(float_types) - {name, *row.computed}
    return not quantized and (name in float_types if row.mode == "fp16" else not others)


def next_precision(target: Target, name: str, *, data: bool, tried: Collection[str] = ()) -> str | None:
    """What to try after a precision that does not agree with the source; None when nothing is left.

    `data` says whether there is any to calibrate on.
    """
    refused = (name, *tried)
    return next((p for p in PRECISIONS[name].then if p not in refused and _possible(target, p, data)), None)


def _possible(target: Target, name: str, data: bool) -> bool:
    row = PRECISIONS[name]
    if target.device in row.useless_on:
        return False
    if row.mode in (None, "fp16"):
        return True
    return target.device not in catalog.BY_NAME[target.ep].unquantized and (data or not row.needs_data)


def parse_precision(name: str) -> str:
    """A name as it is spelled in the table, or `auto`; raises for any other."""
    folded = name.strip().casefold()
    if folded not in (*PRECISIONS, AUTO):
        raise RequestError(f"unknown precision `{name}`", hint=did_you_mean(name, (*PRECISIONS, AUTO)))
    return folded


def split_parts(text: str) -> tuple[str, dict[str, str]]:
    """The precision of a model and those of some of its parts: `int4,encoder=fp16`; raises for what is neither."""
    pieces = text.split(",")
    alone = [piece for piece in pieces if "=" not in piece]
    if len(alone) > 1:
        raise RequestError(f"precision `{text}` names two for the same model: `{alone[0]}` and `{alone[1]}`")
    found: dict[str, str] = {}
    for piece in pieces:
        part, given, name = piece.partition("=")
        if given and part.strip() in found:
            raise RequestError(f"precision `{text}` names part `{part.strip()}` twice")
        if given:
            found[part.strip()] = parse_precision(name)
    return alone[0] if alone else AUTO, found


def resolve(target: Target, name: str) -> str:
    """A concrete precision for `auto`, and any other name as it is spelled in the table."""
    found = parse_precision(name)
    return catalog.BY_NAME[target.ep].auto_precision.get(target.device, UNQUANTIZED) if found == AUTO else found


def fit_cache(section: QuantizeSection | None, inputs: Collection[str]) -> QuantizeSection | None:
    """The section for a graph with these inputs: a decoder in float16 has its cache and its logits in float16 too.

    As onnxruntime-genai's builder makes it: the cache takes half the memory, and no step casts it. A decoder that reads
    an encoder keeps its types, which are those of what the encoder gives.
    """
    has_cache = any(name.startswith("past_") for name in inputs)
    if section is None or section.mode != "fp16" or not has_cache or any("encoder" in name for name in inputs):
        return section
    return replace(section, keep_io_types=False)


def quantize_section(target: Target, name: str, **changes: Any) -> QuantizeSection | None:
    """The section for a precision on a target, with some keys changed; None when nothing is quantized."""
    precision = resolve(target, name)
    info = catalog.BY_NAME[target.ep]
    section = PRECISIONS[precision].section(info.int8)
    reason = info.unquantized.get(target.device)
    if section is not None and section.mode != "fp16" and reason is not None:
        raise RequestError(
            f"precision `{precision}` cannot be used on {target}: {reason}", hint="use `-p fp32` or `-p fp16`"
        )
    return None if section is None else replace(section, **changes)
