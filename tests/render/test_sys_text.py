"""The whole text of `winml sys`."""

from __future__ import annotations

from typing import Any

from winml.modelkit.core.target import Device
from winml.modelkit.ep.devices import EPDevice
from winml.modelkit.ep.problems import Problem
from winml.modelkit.ep.sys_command import EPState, Installation, Machine, SysResult, TargetState, TargetStatus
from winml.modelkit.render.sys import device_text, ep_text, machine_text, problems_text


def row(target: str, status: TargetStatus, reason: str | None = None, hint: str | None = None) -> TargetState:
    return TargetState(target=target, simulated=status == "simulated", status=status, reason=reason, hint=hint)


def installation(package: str, version: str | None, *targets: TargetState, **changed: Any) -> Installation:
    given = {"package": package, "version": version, "environment": None, "devices": (), "targets": targets}
    return Installation(**{**given, **changed})


def ep(name: str, *installations: Installation, missing: tuple[TargetState, ...] = ()) -> EPState:
    return EPState(ep=name, full_name=name, can_compile=False, installations=installations, missing=missing)


def device(kind: Device, vendor: str, device_id: int) -> EPDevice:
    return EPDevice(kind=kind, vendor=vendor, vendor_id=0, device_id=device_id, metadata={}, ep_metadata={})


def system(*, onnxruntime: str | None = "1.31.1") -> SysResult:
    machine = Machine(system="Linux", release="6.1.0", architecture="x86_64", cores=8, memory_bytes=16 * 2**30)
    return SysResult(machine=machine, winml="0.1.0", python="3.11.7", onnxruntime=onnxruntime, eps=())


def test_the_machine_and_its_runtime() -> None:
    assert machine_text(system()) == (
        "machine  Linux 6.1.0 x86_64 · 8 cores · 16.0 GiB memory\n"
        "runtime  onnxruntime 1.31.1 · Python 3.11.7 · winml-modelkit 0.1.0"
    )


def test_a_machine_without_a_runtime_says_so() -> None:
    assert "runtime  onnxruntime not installed · Python" in machine_text(system(onnxruntime=None))


def test_one_line_per_target_with_its_status_source_and_reason() -> None:
    eps = [
        ep("cpu", installation("onnxruntime", "1.31.1", row("cpu", "ready"))),
        ep(
            "qnn",
            installation(
                "onnxruntime-qnn",
                "2.7.0",
                row("qnn/npu", "simulated", "times are not real"),
                row("qnn/gpu", "no-device", "no device: it loads but finds no Qualcomm gpu"),
            ),
        ),
        ep("dml", missing=(row("dml/gpu", "missing", "exists for Windows, not for Linux x86_64"),)),
    ]
    assert ep_text(eps) == (
        "target   status     from\n"
        "cpu      ready      onnxruntime 1.31.1\n"
        "qnn/npu  simulated  onnxruntime-qnn 2.7.0  times are not real\n"
        "qnn/gpu  no-device  onnxruntime-qnn 2.7.0  no device: it loads but finds no Qualcomm gpu\n"
        "dml/gpu  missing                           exists for Windows, not for Linux x86_64"
    )


def test_targets_of_an_ep_with_the_same_reason_share_a_line() -> None:
    reason, hint = "`a` is not installed", "install it with `pip install a`"
    missing = tuple(row(f"openvino/{d}", "missing", reason, hint) for d in ("npu", "gpu", "cpu"))
    assert ep_text([ep("openvino", missing=missing)]) == (
        "target                                    status   from\n"
        "openvino/npu, openvino/gpu, openvino/cpu  missing        `a` is not installed; install it with `pip install a`"
    )


def test_targets_of_different_eps_keep_their_own_lines() -> None:
    eps = [ep(name, missing=(row(f"{name}/gpu", "missing", "same reason"),)) for name in ("cuda", "dml")]
    assert [text.split()[0] for text in ep_text(eps).split("\n")] == ["target", "cuda/gpu", "dml/gpu"]


def test_every_installation_of_an_ep_has_lines_of_its_own_and_a_private_one_says_so() -> None:
    here = installation("onnxruntime-ep-openvino", "1.8.1", row("openvino/cpu", "ready"))
    private = installation("onnxruntime-openvino", "1.24.1", row("openvino/cpu", "ready"), environment="/c/openvino")
    assert ep_text([ep("openvino", here, private)]) == (
        "target        status  from\n"
        "openvino/cpu  ready   onnxruntime-ep-openvino 1.8.1\n"
        "openvino/cpu  ready   onnxruntime-openvino 1.24.1 (own environment)"
    )


def test_a_package_of_unknown_version_is_named_alone() -> None:
    text = ep_text([ep("cpu", installation("onnxruntime", None, row("cpu", "ready")))])
    assert text.split("\n")[1] == "cpu     ready   onnxruntime"


def test_one_line_per_device_with_who_found_it() -> None:
    cpu = installation("onnxruntime", "1.31.1", devices=[device("cpu", "AMD", 0)])
    found = [device("npu", "", 0x41), device("gpu", "Qualcomm", 0x43050A01)]
    qnn = installation("onnxruntime-qnn", "2.7.0", devices=found)
    assert device_text([ep("cpu", cpu), ep("qnn", qnn), ep("dml")]) == (
        "kind  vendor    device id   found by\n"
        "cpu   AMD       0x0000      cpu\n"
        "npu   unknown   0x0041      qnn\n"
        "gpu   Qualcomm  0x43050a01  qnn"
    )


def test_without_devices_only_the_heading_is_left() -> None:
    assert device_text([ep("cpu")]) == "kind  vendor  device id  found by"


def test_problems_come_with_their_commands_and_what_is_not_installed_after_them() -> None:
    optional = Problem(what="no images", why="pillow is not installed", commands=("pip install x",), optional=True)
    broken = Problem(what="two runtimes", why="they overwrite each other", commands=("first", "second"))
    assert problems_text([optional, broken]) == (
        "problems\n"
        "  two runtimes: they overwrite each other\n"
        "    first\n"
        "    second\n"
        "not installed\n"
        "  no images: pillow is not installed\n"
        "    pip install x"
    )
    assert problems_text([]) == ""
