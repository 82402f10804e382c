"""What a search may choose about quantizing."""

from __future__ import annotations

from dataclasses import replace

from winml.modelkit.building.quantize.mending import ALPHA
from winml.modelkit.core import values
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog, precision

OP_TYPES = (("MatMul",), ("Conv",), ("Gemm",), ("MatMul", "Gemm"))
"""Operators that may be quantized alone."""
BLOCK_SIZES = (16, 64, 128)
"""Weights that share a scale, besides the 32 of `int4`."""


def _schemes(target: Target) -> tuple[Level, ...]:
    """Levels whose sections differ; two names for one section would be one config twice."""
    levels: dict[str, Level] = {}
    for name, scheme in precision.schemes():
        try:
            section = precision.quantize_section(target, name, **scheme.changes)
        except RequestError:
            continue  # the device must not get quantized models
        assert section is not None
        needs = ("data",) if section.mode == "static" else ()
        sets = {"precision": name, "quantize": values.to_json(section)}
        levels.setdefault(repr(sets["quantize"]), Level(scheme.name, sets, needs=needs))
    return tuple(levels.values())


def knobs(target: Target) -> tuple[Knob, ...]:
    """The scheme, and what can be changed within the schemes that the target has."""
    schemes = _schemes(target)
    modes = {level.sets["quantize"]["mode"] for level in schemes}
    within = tuple(
        knob
        for knob in _within(catalog.BY_NAME[target.ep].int8.per_channel)
        if modes.intersection(knob.when["quantize.mode"])
    )
    return (Knob("quantize.scheme", schemes, prior=5.0), *within)


def _with_cache(level: Level) -> Level:
    """A scheme for a graph with a cache."""
    section = precision.fit_cache(values.read(QuantizeSection, level.sets["quantize"]), ("past_key_values.0.key",))
    return replace(level, sets={**level.sets, "quantize": values.to_json(section)})


def decoder_knobs(target: Target) -> tuple[Knob, ...]:
    """The same of a model that generates text: schemes that need no data, and how blocks of weights are quantized."""
    schemes = [_with_cache(level) for level in _schemes(target) if not level.needs]
    # A step reads every weight once, so that fewer bits come first.
    schemes.sort(key=lambda level: level.sets["quantize"]["mode"] != "weight_only")
    blocks = {"quantize.mode": ("weight_only",)}
    asymmetric = {"quantize.symmetric_weights": False}
    return (
        Knob("quantize.scheme", tuple(schemes), prior=5.0),
        Knob(
            "quantize.block_size",
            tuple(Level(str(size), {"quantize.block_size": size}) for size in BLOCK_SIZES),
            when=blocks,
            prior=2.0,
        ),
        Knob(
            "quantize.block_method",
            (
                Level("hqq", {"quantize.block_method": "hqq", **asymmetric}),
                Level("k_quant", {"quantize.block_method": "k_quant"}),
            ),
            when=blocks,
            prior=1.0,
        ),
        Knob(
            "quantize.weights",
            (Level("asymmetric", asymmetric),),
            when={**blocks, "quantize.symmetric_weights": (True,)},
            prior=1.0,
        ),
    )


def _only(*ops: str) -> Level:
    return Level("+".join(ops), {"quantize.op_types": list(ops)}, ops=ops)


def _within(per_channel: bool) -> tuple[Knob, ...]:
    """Knobs of a scheme; `per_channel` is what the target's own scheme has."""
    static, whole = {"quantize.mode": ("static",)}, {"quantize.mode": ("static", "dynamic")}
    return (
        Knob("quantize.op_types", tuple(_only(*ops) for ops in OP_TYPES), when=whole, prior=3.0, narrows=True),
        Knob(
            "quantize.calibration_method",
            (
                Level("percentile", {"quantize.calibration_method": "percentile"}),
                Level("entropy", {"quantize.calibration_method": "entropy"}),
                Level("mse", {"quantize.calibration_method": "mse"}),
                Level("best", {"quantize.calibration_method": "best"}),
            ),
            when=static,
            narrows=True,
        ),
        Knob("quantize.bias_correction", (Level("on", {"quantize.bias_correction": True}),), when=static, narrows=True),
        Knob(
            "quantize.smoothing",
            (Level(str(ALPHA), {"quantize.smoothing": ALPHA}, ops=("MatMul",)),),
            when=static,
            narrows=True,
        ),
        Knob(
            "quantize.per_channel",
            (Level("off" if per_channel else "on", {"quantize.per_channel": not per_channel}),),
            when={**whole, "quantize.per_channel": (None, per_channel), "quantize.weight_type": ("int8", "uint8")},
            narrows=True,
        ),
        Knob(
            "quantize.reduce_range",
            (Level("on", {"quantize.reduce_range": True}),),
            when={**static, "quantize.weight_type": ("int8", "uint8")},
            narrows=True,
        ),
    )
