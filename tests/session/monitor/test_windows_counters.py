"""Loads of GPUs and NPUs from the counters of Windows, in the form its documentation and Task Manager show them."""

from __future__ import annotations

import pytest

from winml.modelkit.session.monitor.windows_counters import adapter_load

GPU = "luid_0x00000000_0x0000D1A3_phys_0"
NPU = "luid_0x00000000_0x0001A2B4_phys_0"
ROWS = [
    (f"pid_4_{GPU}_eng_0_engtype_3D", 20.0),
    (f"pid_1234_{GPU}_eng_0_engtype_3D", 15.0),
    (f"pid_1234_{GPU}_eng_3_engtype_Compute_0", 30.0),
    (f"pid_1234_{GPU}_eng_7_engtype_VideoDecode", 5.0),
    (f"pid_1234_{NPU}_eng_0_engtype_Compute", 40.0),
    (f"pid_77_{NPU}_eng_0_engtype_Compute", 25.0),
    ("something else", 99.0),
]


def test_the_parts_of_all_processes_in_an_engine_are_its_load() -> None:
    assert adapter_load(ROWS, "npu") == pytest.approx(65.0)
    assert adapter_load(ROWS, "gpu") == pytest.approx(35.0)


def test_a_gpu_that_computes_is_no_npu() -> None:
    gpu_alone = [row for row in ROWS if GPU in row[0]]
    assert adapter_load(gpu_alone, "npu") is None
    busy = [(f"pid_9_{GPU}_eng_3_engtype_Compute_0", 90.0), (f"pid_4_{GPU}_eng_0_engtype_3D", 1.0)]
    assert (adapter_load(busy, "gpu"), adapter_load(busy, "npu")) == (90.0, None)


def test_no_adapter_is_another_answer_than_an_idle_one() -> None:
    assert adapter_load([], "npu") is None
    assert adapter_load([(f"pid_4_{NPU}_eng_0_engtype_Compute", 0.0)], "npu") == 0.0


def test_rounding_of_windows_does_not_make_more_than_everything() -> None:
    assert adapter_load([(f"pid_{n}_{NPU}_eng_0_engtype_Compute", 50.5) for n in (1, 2)], "npu") == 100.0
