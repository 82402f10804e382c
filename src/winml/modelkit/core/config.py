"""BuildConfig: what a build does to a model, section by section, with nothing left open.

A section that is null is a stage that is skipped. The session section is how the result is opened; it is in no key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.measurement import SessionSection, check_session
from winml.modelkit.core.sections import (
    choice,
    each,
    flag,
    key,
    mapping,
    names,
    number,
    optional,
    section,
    sizes,
    text,
    whole,
    words,
)
from winml.modelkit.core.trust import OptionGate

SCHEMA = "winml/build-config/1"

HUB = "hf:"
"""How a file of a data set of the Hugging Face hub begins: `hf:ORG/NAME/FILE[@REVISION]`."""
RANDOM = "random"
"""Calibration on random inputs: only when asked for by this word."""


def _ranges(value: Any, where: str) -> dict[str, tuple[float, float]]:
    """Least and greatest value by name."""
    return {name: _range(pair, f"{where}.{name}") for name, pair in mapping(value, where).items()}


def _range(value: Any, where: str) -> tuple[float, float]:
    ends = each(number(-1e9, 1e9))(value, where)
    if len(ends) != 2 or ends[0] > ends[1]:
        raise RequestError(f"`{where}` must be the least and the greatest value but got {value!r}")
    return (ends[0], ends[1])


@dataclass(frozen=True)
class DataSection:
    """Where samples come from and how they become inputs."""

    source: str = key(text)
    """A file or folder, `hf:ORG/NAME/FILE[@REVISION]`, or `random`."""
    limit: int | None = key(optional(whole(1)), None)
    """How many samples to use, chosen with the seed; null uses all."""
    seed: int = key(whole(0), 0)
    columns: dict[str, str] = key(words, factory=dict)
    """Columns of a table by role: `text`, `text_pair`, `label`, `image`, or the name of an input."""
    processor: str | None = key(optional(text), None)
    """Folder with the tokenizer or image processor; null looks beside the model."""
    length: int | None = key(optional(whole(1)), None)
    """Tokens per text where the model leaves that open; null is the default of `data/text.py`."""
    ranges: dict[str, tuple[float, float]] = key(_ranges, factory=dict)
    """Least and greatest value of random inputs by name; others lie from 0 to 1."""
    dims: dict[str, int] = key(sizes, factory=dict)
    """Sizes that axes have in random inputs where the model leaves them open; others are 1."""
    digest: str | None = key(optional(text), None)
    """Content of the data when the config was made; data that changed since is an error."""

    def absolute(self) -> DataSection:
        """The section by paths that mean the same in any folder."""
        elsewhere = self.source == RANDOM or self.source.startswith(HUB)
        source = self.source if elsewhere else str(Path(self.source).absolute())
        processor = None if self.processor is None else str(Path(self.processor).absolute())
        return replace(self, source=source, processor=processor)


def _axis(value: Any, where: str) -> int | str:
    """A size, or the name of an axis that stays open."""
    return text(value, where) if isinstance(value, str) else int(whole(1)(value, where))


@dataclass(frozen=True)
class InputSection:
    """An input of a model that is exported, with the values that samples of it have."""

    name: str = key(text)
    dtype: str = key(choice("float32", "int64", "bool"), "float32")
    shape: tuple[int | str, ...] = key(each(_axis), ())
    """Sizes, and names of the axes that stay open."""
    low: float = key(number(-1e9, 1e9), -1.0)
    high: float = key(number(-1e9, 1e9), 1.0)
    """Values lie from `low` to `high`, for whole numbers both included."""
    values: str = key(choice("random", "padding", "positions"), "random")
    """`padding`: ones, then zeros in the last sample; `positions`: 0, 1, 2 …"""


@dataclass(frozen=True)
class ExportSection:
    """How a Hugging Face model becomes ONNX."""

    task: str = key(text)
    part: str = key(text, "model")
    """Which part of a composite model; `model` is the whole."""
    exporter: str = key(choice("transformers", "legacy"), "transformers")
    opset: int = key(whole(17, 24), 20)
    attention: str = key(choice("eager", "sdpa"), "eager")
    """How attention is traced; `eager` gives the smaller graph."""
    inputs: tuple[InputSection, ...] = key(each(section(InputSection)), ())
    sizes: dict[str, int] = key(sizes, factory=dict)
    """Sizes of open axes in the sample that is traced."""
    seed: int = key(whole(0), 0)
    verify: bool = key(flag, True)
    """Whether outputs are compared with those of PyTorch."""


@dataclass(frozen=True)
class OptimizeSection:
    """Which passes run, in this order, and what is fixed before them."""

    passes: tuple[str, ...] = key(names, ())
    opset: int | None = key(optional(whole(7)), None)
    """Opset to convert to; null keeps the model's."""
    fixed_dims: dict[str, int] = key(sizes, factory=dict)
    """Sizes of symbolic dimensions, written into the model."""


@dataclass(frozen=True)
class QuantizeSection:
    """How numbers become smaller. Fields that a mode does not use stay at their defaults."""

    mode: str = key(choice("fp16", "dynamic", "static", "weight_only"))
    activation_type: str | None = key(optional(choice("uint8", "int8", "uint16", "int16")), None)
    weight_type: str | None = key(optional(choice("int8", "uint8", "int16", "int4", "uint4")), None)
    per_channel: bool | None = key(optional(flag), False)
    """Scales of weights; null measures both ways where outputs agree poorly (static 8-bit pairs by `ort` rules)."""
    symmetric_activations: bool = key(flag, False)
    symmetric_weights: bool = key(flag, True)
    reduce_range: bool | None = key(optional(flag), None)
    """7-bit weights, for x86 processors without VNNI whose 16-bit sums could saturate; null asks this one."""
    rules: str = key(choice("ort", "qnn"), "ort")
    """Whose conventions the QDQ pairs follow."""
    calibration_method: str = key(choice("minmax", "entropy", "percentile"), "minmax")
    percentile: float = key(number(50.0, 100.0), 99.99)
    op_types: tuple[str, ...] | None = key(optional(names), None)
    """Only these operators; null means all that the mode can quantize."""
    exclude_op_types: tuple[str, ...] = key(names, ())
    nodes: tuple[str, ...] | None = key(optional(names), None)
    exclude_nodes: tuple[str, ...] = key(names, ())
    block_size: int | None = key(optional(whole(16, 1024)), None)
    """Weights that share a scale, for `weight_only`."""
    keep_io_types: bool = key(flag, True)
    """With `fp16`: inputs and outputs stay float32."""
    calibration: DataSection | None = key(optional(section(DataSection)), None)


def _compiler(value: Any, where: str) -> str:
    """`ort_session` is what the compiler `ort_jit` was called before."""
    return str(choice("ort", "ort_jit", "qairt")("ort_jit" if value == "ort_session" else value, where))


@dataclass(frozen=True)
class CompileSection:
    """How the model becomes an EP context."""

    compiler: str = key(_compiler, "ort")
    embed: bool = key(flag, False)
    """Whether the compiled data is inside the ONNX file instead of beside it."""
    provider_options: dict[str, str] = key(words, factory=dict)


def compile_section_from_json(value: Any, gate: OptionGate) -> CompileSection:
    """A compile section on its own."""
    section = sections.read(CompileSection, value, "compile")
    check_compile(section, gate)
    return section


def check_compile(section: CompileSection, gate: OptionGate) -> None:
    """Raise for the first option of a section that the gate refuses."""
    for name, text_value in section.provider_options.items():
        gate.check_option(name, text_value, "compile.provider_options")


@dataclass(frozen=True)
class EvalSection:
    """What the model is judged by."""

    task: str = key(text)
    data: DataSection = key(section(DataSection))
    min_metric: float | None = key(optional(number(-1e9, 1e9)), None)
    max_drop: float | None = key(optional(number(0.0, 1e9)), None)


def _schema(value: Any, where: str) -> str:
    if value == SCHEMA:
        return SCHEMA
    family = SCHEMA.rpartition("/")[0]
    if isinstance(value, str) and value.startswith(f"{family}/"):
        raise RequestError(
            f"the config says `{value}`; this winml reads {SCHEMA}",
            hint="it was written by another version of winml; make it again with `winml config`",
        )
    raise RequestError(f"`{where}` must be `{SCHEMA}` but got {value!r}", hint="`winml config` writes a config")


@dataclass(frozen=True)
class BuildConfig:
    """Everything a build needs besides the machine."""

    schema: str = key(_schema)
    model: str | None = key(optional(text), None)
    target: str = key(text, "cpu")
    precision: str = key(text, "fp32")
    """The word the quantize section was made from."""
    export: ExportSection | None = key(optional(section(ExportSection)), None)
    optimize: OptimizeSection | None = key(optional(section(OptimizeSection)), None)
    quantize: QuantizeSection | None = key(optional(section(QuantizeSection)), None)
    compile: CompileSection | None = key(optional(section(CompileSection)), None)
    session: SessionSection = key(section(SessionSection), factory=SessionSection)
    eval: EvalSection | None = key(optional(section(EvalSection)), None)

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = sections.plain(self)
        return value


def config_from_json(value: Any, gate: OptionGate) -> BuildConfig:
    """The config in a JSON value; an error names the first key that does not fit, or that the gate refuses."""
    if isinstance(value, dict) and "schema" in value:
        _schema(value["schema"], "schema")
    config = sections.read(BuildConfig, value, "")
    check_session(config.session, gate)
    if config.compile is not None:
        check_compile(config.compile, gate)
    return config
