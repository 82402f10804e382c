"""Opens an arm in this process: its session and the inputs it is run with."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import SessionError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.graph.inputs import Arrays, InputRequest, InputSpec, from_npz, symbol_sizes, synthetic
from winml.modelkit.graph.sizes import open_dims
from winml.modelkit.session.arm import ArmArguments
from winml.modelkit.session.session import WinMLSession

CPU = Target("cpu", "cpu")
Values = Callable[[Sequence[InputSpec]], Arrays]
"""Makes the inputs of a model."""


@dataclass(frozen=True)
class OpenArm:
    """A session with the inputs to run it on."""

    session: WinMLSession
    arrays: Arrays
    open_ns: int


def _request(specs: Sequence[InputSpec], asked: InputSettings) -> InputRequest:
    ranges, dims = dict(asked.int_ranges), dict(asked.dims)
    if asked.sizes is not None:
        # Names were checked against the requested model; an artifact of it may have fixed or lost some.
        opened, names = open_dims(specs), {spec.name for spec in specs}
        dims = {name: size for name, size in dims.items() if name in opened}
        ranges = {name: ends for name, ends in ranges.items() if not name or name in names}
    return InputRequest(dims, asked.batch_size, ranges, asked.seed, placeholders=asked.placeholders or {})


def _arrays(specs: Sequence[InputSpec], asked: InputSettings) -> Arrays:
    if asked.npz is not None:
        return from_npz(asked.npz, specs)
    return synthetic(specs, _request(specs, asked))


def _fix_dims(arm: ArmArguments, values: Values) -> tuple[dict[str, int], Arrays | None]:
    """Sizes for the symbolic dimensions of a model that goes to an NPU, and the inputs they come from.

    NPUs compile for fixed shapes: what depends on a symbolic dimension would stay on the CPU. The model is opened on
    the CPU first to read its inputs, which costs less than compiling it twice.
    """
    if arm.device != "npu":
        return {}, None
    try:
        plain = WinMLSession(arm.model, target=CPU, section=SessionSection(optimization_level="disable"))
    except SessionError:
        return {}, None  # a compiled model opens only on its own EP, and its shapes are fixed
    with plain:
        specs = plain.inputs
    if not any(isinstance(dim, str) for spec in specs for dim in spec.shape):
        return {}, None
    arrays = values(specs)
    return symbol_sizes(specs, arrays), arrays


@dataclass
class ClosedArm:
    """A session that is not open yet, with what to run it on."""

    session: WinMLSession
    values: Values
    made: Arrays | None

    def open(self) -> OpenArm:
        """Open the session; it is closed again when there are no inputs for it."""
        opened_at = time.perf_counter_ns()
        self.session.compile()
        open_ns = time.perf_counter_ns() - opened_at
        try:
            return OpenArm(self.session, self.made or self.values(self.session.inputs), open_ns)
        except BaseException:
            self.session.close()
            raise


def prepare_arm(arm: ArmArguments, values: Values | None = None) -> ClosedArm:
    """An arm that is not open yet; `values` makes its inputs instead of its own settings."""
    wanted: Values = values or (lambda specs: _arrays(specs, arm.inputs))
    fixed_dims, arrays = _fix_dims(arm, wanted)
    session = WinMLSession(
        arm.model,
        target=arm.target,
        section=replace(arm.session, fixed_dims=fixed_dims),
        strict_ep=arm.strict_ep,
        distribution=arm.distribution,
        lazy=True,
    )
    return ClosedArm(session, wanted, arrays)


def open_arm(arm: ArmArguments, values: Values | None = None) -> OpenArm:
    """Open an arm; `values` makes its inputs instead of its own settings."""
    return prepare_arm(arm, values).open()
