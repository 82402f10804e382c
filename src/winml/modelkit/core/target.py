"""A target: the execution provider and the kind of device a model runs on."""

from __future__ import annotations

from typing import Any, Literal, get_args

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError

Device = Literal["npu", "gpu", "cpu"]
DEVICES: tuple[Device, ...] = get_args(Device)


@dataclass(frozen=True)
class NamedTarget:
    """A target as JSON has it, among the fields of what it belongs to."""

    target: str
    simulated: bool


@dataclass(frozen=True)
class Target:
    """Written `qnn/npu`, `openvino/cpu`, `cpu`; `simulated` where the device is emulated."""

    ep: str
    device: Device
    simulated: bool = False

    def __str__(self) -> str:
        return self.ep if self.ep == self.device else f"{self.ep}/{self.device}"

    def to_json(self) -> dict[str, Any]:
        return {"target": str(self), "simulated": self.simulated}

    def to_value(self) -> NamedTarget:
        return NamedTarget(str(self), self.simulated)

    @classmethod
    def from_value(cls, value: NamedTarget) -> Target:
        ep, _, device = value.target.partition("/")
        device = device or ep
        if device not in DEVICES:
            raise RequestError(f"`{value.target}` is not a target")
        return cls(ep, device, value.simulated)
