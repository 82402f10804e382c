"""BuildConfig: what a build does to a model, section by section, with nothing left open.

A section that is null is a stage that is skipped. The session section is how the result is opened; it is in no key.
"""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from winml.modelkit.core import values
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.measurement import SessionSection, check_session
from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.core.trust import OptionGate
from winml.modelkit.core.values import AtLeast, AtMost, Between, Names, OneOf, Ordered, Text, key

SCHEMA: Final = "winml/build-config/1"

HUB = "hf:"
"""How a file of a data set of the Hugging Face hub begins: `hf:ORG/NAME/FILE[@REVISION]`."""
RANDOM = "random"
"""Calibration on random inputs: only when requested by this name."""
DEFAULT = "default"
"""The data set of the hub that `data/defaults.py` has for the task of the model."""


Count = Annotated[int, AtLeast(1)]
Seed = Annotated[int, AtLeast(0)]
Number = Annotated[float, Between(-1e9, 1e9)]
Range = Annotated[tuple[Number, Number], Ordered()]
"""The least and the greatest value."""
Axis = Count | Text
"""A size, or the name of an axis that stays open."""


@dataclass(frozen=True)
class DataSection:
    """Where samples come from and how they become inputs."""

    source: Text
    """A file or folder, `hf:ORG/NAME/FILE[@REVISION]`, `random`, or `default` for the data set of the task."""
    limit: Count | None = None
    """How many samples to use, chosen with the seed; null uses all."""
    seed: Seed = 0
    columns: dict[str, str] = field(default_factory=dict)
    """Columns of a table by role: `text`, `text_pair`, `label`, `image`, or the name of an input."""
    processor: Text | None = None
    """Folder with the tokenizer or image processor; null looks beside the model."""
    length: Count | None = None
    """Tokens per text where the model leaves that open; null is the default of `data/text.py`."""
    ranges: dict[str, Range] = field(default_factory=dict)
    """Least and greatest value of random inputs by name; others lie from 0 to 1."""
    dims: dict[str, Count] = field(default_factory=dict)
    """Sizes that axes have in random inputs where the model leaves them open; others are 1."""
    digest: Text | None = None
    """Content of the data when the config was made; data that changed since is an error."""
    placeholders: dict[str, Placeholders] | None = key(omit=True, default=None)
    """Words of random inputs that stand for what another input holds, by the name of the input."""

    def absolute(self) -> DataSection:
        """The section by paths that mean the same in any folder."""
        elsewhere = self.source in (RANDOM, DEFAULT) or self.source.startswith(HUB)
        source = self.source if elsewhere else str(Path(self.source).absolute())
        processor = None if self.processor is None else str(Path(self.processor).absolute())
        return replace(self, source=source, processor=processor)


@dataclass(frozen=True)
class InputSection:
    """An input of a model that is exported, with the values that samples of it have."""

    name: Text
    dtype: Annotated[str, OneOf(("float32", "int64", "bool"))] = "float32"
    shape: tuple[Axis, ...] = ()
    """Sizes, and names of the axes that stay open."""
    low: Number = -1.0
    high: Number = 1.0
    """Values lie from `low` to `high`, for whole numbers both included."""
    values: Annotated[str, OneOf(("random", "padding", "positions", "boxes"))] = "random"
    """`padding`: ones, then zeros in the last sample; `positions`: 0, 1, 2 …; `boxes`: left, top, right, bottom."""
    placeholders: Placeholders | None = key(omit=True, default=None)
    """Words that stand for what another input holds, at the beginning of every sample."""


@dataclass(frozen=True)
class ExportSection:
    """How a Hugging Face model becomes ONNX."""

    task: Text
    part: Text = "model"
    """Which part of a composite model; `model` is the whole."""
    exporter: Annotated[str, OneOf(("transformers", "legacy", "genai"))] = "transformers"
    opset: Annotated[int, AtLeast(17), AtMost(24)] = 20
    attention: Annotated[str, OneOf(("eager", "sdpa"))] = "eager"
    """How attention is traced; `eager` gives the smaller graph."""
    inputs: tuple[InputSection, ...] = ()
    sizes: dict[str, Count] = field(default_factory=dict)
    """Sizes of open axes in the sample that is traced."""
    fixed_sizes: dict[str, Count] = field(default_factory=dict)
    """Sizes of open axes where a device needs fixed shapes; what is not named follows from the config."""
    derived: Names = ()
    """How the inputs were derived, for an architecture that is in no table."""
    mean_noise: bool = False
    """Whether random numbers that the class draws are replaced by their mean, so that outputs can be compared."""
    fall_back: bool = False
    """Whether axes may be fixed, and the other exporter be used, where the model cannot be traced otherwise."""
    seed: Seed = 0
    verify: bool = True
    """Whether outputs are compared with those of PyTorch."""


@dataclass(frozen=True)
class OptimizeSection:
    """Which passes run, in this order, and what is fixed before them."""

    passes: Names = ()
    opset: Annotated[int, AtLeast(7)] | None = None
    """Opset to convert to; null keeps the model's."""
    fixed_dims: dict[str, Count] = field(default_factory=dict)
    """Sizes of symbolic dimensions, written into the model."""


@dataclass(frozen=True)
class QuantizeSection:
    """How numbers become smaller. Fields that a mode does not use stay at their defaults."""

    mode: Annotated[str, OneOf(("fp16", "dynamic", "static", "weight_only"))]
    activation_type: Annotated[str, OneOf(("uint8", "int8", "uint16", "int16"))] | None = None
    weight_type: Annotated[str, OneOf(("int8", "uint8", "int16", "int4", "uint4"))] | None = None
    per_channel: bool | None = False
    """Scales of weights; null measures both ways where outputs agree poorly (static 8-bit pairs by `ort` rules)."""
    symmetric_activations: bool = False
    symmetric_weights: bool = True
    reduce_range: bool | None = None
    """7-bit weights, for x86 processors without VNNI whose 16-bit sums could saturate; null asks this one."""
    rules: Annotated[str, OneOf(("ort", "qnn"))] = "ort"
    """Whose conventions the QDQ pairs follow."""
    calibration_method: Annotated[str, OneOf(("minmax", "entropy", "percentile", "mse", "best"))] = "minmax"
    """How the ranges of activations are computed; `best` chooses for each tensor what loses least."""
    percentile: Annotated[float, Between(50.0, 100.0)] = 99.99
    bias_correction: bool | None = key(omit=True)
    """Whether the mean error of every product on calibration data goes into its bias, for `static`; null does not."""
    smoothing: Annotated[float, Between(0.0, 1.0)] | None = key(omit=True)
    """How much of the range of activations goes into the weights of products (0 to 1), for `static`; null is none."""
    op_types: Names | None = None
    """Only these operators; null means all that the mode can quantize."""
    exclude_op_types: Names = ()
    nodes: Names | None = None
    exclude_nodes: Names = ()
    wide_nodes: Names | None = key(omit=True)
    """Nodes with 16-bit activations among others with 8 bits, for `static` by `qnn` rules."""
    block_size: Annotated[int, AtLeast(16), AtMost(1024)] | None = None
    """Weights that share a scale, for `weight_only`."""
    block_method: Annotated[str, OneOf(("rtn", "hqq", "k_quant"))] | None = key(omit=True)
    """How scales of blocks are found, for `weight_only`; null rounds to the nearest (`rtn`)."""
    block_compute: Annotated[str, OneOf(("float32", "int8"))] | None = key(omit=True)
    """What activations are multiplied in, for `weight_only`; null is float32, int8 is faster."""
    keep_io_types: bool = True
    """With `fp16`: inputs and outputs stay float32."""
    calibration: DataSection | None = None


COMPILERS = ("ort", "ort_jit", "qairt")


@dataclass(frozen=True)
class CompileSection:
    """How the model becomes an EP context."""

    compiler: Annotated[str, OneOf(COMPILERS, earlier=(("ort_session", "ort_jit"),))] = "ort"
    embed: bool = False
    """Whether the compiled data is inside the ONNX file instead of beside it."""
    provider_options: dict[str, str] = field(default_factory=dict)


def check_compile(section: CompileSection, gate: OptionGate) -> None:
    """Raise for the first option of a section that the gate rejects."""
    for name, text_value in section.provider_options.items():
        gate.check_option(name, text_value, "compile.provider_options")


@dataclass(frozen=True)
class EvalSection:
    """What the model is judged by."""

    task: Text
    data: DataSection
    min_metric: Number | None = None
    max_drop: Annotated[float, Between(0.0, 1e9)] | None = None


@dataclass(frozen=True)
class BuildConfig:
    """Everything a build needs except the machine."""

    schema: Literal["winml/build-config/1"] = SCHEMA
    model: Text | None = None
    target: Text = "cpu"
    precision: Text = "fp32"
    """The precision that the quantize section was made from."""
    export: ExportSection | None = None
    optimize: OptimizeSection | None = None
    quantize: QuantizeSection | None = None
    compile: CompileSection | None = None
    session: SessionSection = field(default_factory=SessionSection)
    eval: EvalSection | None = None


def read_config(value: Any) -> BuildConfig:
    """The config in a JSON value; an error names the first key that does not fit."""
    if isinstance(value, dict) and "schema" in value:
        _require_schema(value["schema"])
    return values.read(BuildConfig, value)


def config_from_json(value: Any, gate: OptionGate) -> BuildConfig:
    """The config in a JSON value, with nothing in it that the gate rejects."""
    config = read_config(value)
    check_session(config.session, gate)
    if config.compile is not None:
        check_compile(config.compile, gate)
    return config


def _require_schema(found: Any) -> None:
    """Raise for a config of another version before its keys are looked at."""
    if found == SCHEMA:
        return
    if isinstance(found, str) and found.startswith(f"{SCHEMA.rpartition('/')[0]}/"):
        raise RequestError(
            f"the config has schema `{found}`; this winml reads `{SCHEMA}`",
            hint="it was written by another version of winml; create it again with `winml config`",
        )
    raise RequestError(f"`schema` must be `{SCHEMA}` but got {found!r}", hint="`winml config` writes a config")
