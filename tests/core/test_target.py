"""How a target is written."""

from __future__ import annotations

import dataclasses

import pytest

from winml.modelkit.core.target import DEVICES, Target


@pytest.mark.parametrize(
    ("target", "written"),
    [
        (Target("qnn", "npu"), "qnn/npu"),
        (Target("qnn", "npu", simulated=True), "qnn/npu"),
        (Target("openvino", "cpu"), "openvino/cpu"),
        (Target("dml", "gpu"), "dml/gpu"),
        (Target("cpu", "cpu"), "cpu"),
    ],
)
def test_a_target_is_written_as_ep_and_device_and_once_where_both_are_the_same(target: Target, written: str) -> None:
    assert str(target) == written


def test_json_says_whether_the_device_is_simulated() -> None:
    assert Target("qnn", "npu", simulated=True).to_json() == {"target": "qnn/npu", "simulated": True}
    assert Target("cpu", "cpu").to_json() == {"target": "cpu", "simulated": False}


def test_a_simulated_target_is_another_target() -> None:
    assert Target("qnn", "npu", simulated=True) != Target("qnn", "npu")
    assert len({Target("qnn", "npu"), Target("qnn", "npu"), Target("qnn", "npu", simulated=True)}) == 2


def test_a_target_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Target("cpu", "cpu").simulated = True  # type: ignore[misc]


def test_devices_are_those_a_user_may_name() -> None:
    assert DEVICES == ("npu", "gpu", "cpu")
