"""From what the user wrote to a target, on hosts and with probes made by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.core.errors import EPUnavailableError, RequestError
from winml.modelkit.core.target import Device, Target
from winml.modelkit.ep.catalog import BY_NAME, TABLE
from winml.modelkit.ep.discovery import Host, Installed
from winml.modelkit.ep.environments import PrivateEnvironment
from winml.modelkit.ep.targets import TargetRequest, parse_target, request, resolve

ANYTHING = TargetRequest(None, None)


def asked(ep: str | None, device: Device | None = None) -> TargetRequest:
    return TargetRequest(None if ep is None else BY_NAME[ep], device)


# What a user may write


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cpu", asked("cpu")),
        ("qnn", asked("qnn")),
        ("qnn/npu", asked("qnn", "npu")),
        ("qnn/gpu", asked("qnn", "gpu")),
        ("openvino/cpu", asked("openvino", "cpu")),
        ("cpu/cpu", asked("cpu", "cpu")),
        ("QNN/NPU", asked("qnn", "npu")),
        ("Qnn/Npu", asked("qnn", "npu")),
        (" qnn / npu ", asked("qnn", "npu")),
        ("qualcomm/npu", asked("qnn", "npu")),
        ("QNNExecutionProvider/npu", asked("qnn", "npu")),
        ("openvino/auto", asked("openvino")),
        ("auto", ANYTHING),
        ("AUTO", ANYTHING),
        (" auto ", ANYTHING),
    ],
)
def test_a_target_is_ep_or_ep_and_device_in_any_case(text: str, expected: TargetRequest) -> None:
    assert parse_target(text) == expected


@pytest.mark.parametrize("text", ["qnn/", "qnn/ ", "/", "cpu/"])
def test_a_slash_without_a_device_is_a_wrong_request(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_target(text)
    assert caught.value.message == f"target must be written EP or EP/DEVICE but got `{text}`"
    assert caught.value.hint == "for example `qnn/npu`"


@pytest.mark.parametrize("text", ["qnn/npu/0", "qnn/tpu", "qnn//npu", "qnn/npu,gpu"])
def test_an_unknown_device_lists_those_there_are(text: str) -> None:
    with pytest.raises(RequestError, match="^unknown device `") as caught:
        parse_target(text)
    assert all(f"`{d}`" in (caught.value.hint or "") for d in ("npu", "gpu", "cpu", "auto"))


@pytest.mark.parametrize("text", ["qnnn/npu", "/npu", "auto/npu", "qnn npu", "qnn\\npu"])
def test_an_unknown_ep_is_a_wrong_request(text: str) -> None:
    with pytest.raises(RequestError, match="^unknown execution provider `"):
        parse_target(text)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("qnn/cpu", "execution provider `qnn` does not drive a cpu", "it drives `qnn/npu`, `qnn/gpu`"),
        ("cpu/npu", "execution provider `cpu` does not drive a npu", "it drives `cpu`"),
        ("dml/npu", "execution provider `dml` does not drive a npu", "it drives `dml/gpu`"),
        ("vitis/gpu", "execution provider `vitisai` does not drive a gpu", "it drives `vitisai/npu`"),
    ],
)
def test_a_device_the_ep_does_not_drive_lists_those_it_does(text: str, message: str, hint: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_target(text)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize("target", [Target(info.name, d) for info in TABLE for d in info.devices], ids=str)
def test_every_target_is_parsed_back_from_its_own_spelling(target: Target) -> None:
    parsed = parse_target(str(target))
    assert parsed.ep is BY_NAME[target.ep]
    assert parsed.device == (None if str(target) == target.ep else target.device)


@settings(deadline=None)
@given(st.one_of(st.text(max_size=40), st.text("qnpucag/ \t", max_size=10)))
def test_any_text_is_a_request_or_a_wrong_request(text: str) -> None:
    try:
        parsed = parse_target(text)
    except RequestError:
        return
    assert parsed.device is None or (parsed.ep is not None and parsed.device in parsed.ep.devices)


@pytest.mark.parametrize(
    ("ep", "device", "expected"),
    [
        (None, None, ANYTHING),
        ("qnn", None, asked("qnn")),
        (None, "npu", asked(None, "npu")),
        ("qnn", "npu", asked("qnn", "npu")),
        ("QNN", "NPU", asked("qnn", "npu")),
        ("qnn", "auto", asked("qnn")),
        (None, "Auto", ANYTHING),
        ("auto", None, ANYTHING),
        (" AUTO ", None, ANYTHING),
        ("auto", "gpu", asked(None, "gpu")),
        ("DirectML", None, asked("dml")),
    ],
)
def test_ep_and_device_are_the_other_spelling_of_a_target(
    ep: str | None, device: str | None, expected: TargetRequest
) -> None:
    assert request(None, ep, device) == expected


def test_a_target_alone_is_parsed() -> None:
    assert request("qnn/npu", None, None) == asked("qnn", "npu")


@pytest.mark.parametrize(
    ("ep", "device"), [("qnn", None), (None, "npu"), ("qnn", "npu"), ("auto", None), (None, "auto")]
)
def test_a_target_together_with_ep_or_device_is_a_wrong_request(ep: str | None, device: str | None) -> None:
    with pytest.raises(RequestError) as caught:
        request("qnn/npu", ep, device)
    assert caught.value.message == "`--target` cannot be combined with `--ep` or `--device`"
    assert caught.value.hint == "write `--target EP/DEVICE`"


def test_ep_and_device_that_do_not_fit_each_other_are_a_wrong_request() -> None:
    with pytest.raises(RequestError, match="`qnn` does not drive a cpu"):
        request(None, "qnn", "cpu")


def test_a_misspelt_device_suggests_the_nearest() -> None:
    with pytest.raises(RequestError, match="unknown device `gpuu`") as caught:
        request(None, None, "gpuu")
    assert (caught.value.hint or "").startswith("did you mean `gpu`?")


# What this machine has


Answer = tuple[Device, ...] | EPUnavailableError | None


class FakeProbe:
    """Says which real devices each EP has, None for "cannot tell", or raises; remembers whom it was asked about."""

    def __init__(self, **answers: Answer) -> None:
        self._answers = answers
        self.asked: list[str] = []

    def __call__(self, found: Installed) -> tuple[Device, ...] | None:
        self.asked.append(found.ep)
        answer = self._answers.get(found.ep, ())
        if isinstance(answer, EPUnavailableError):
            raise answer
        return answer


def chosen(wanted: TargetRequest, host: Host, probe: FakeProbe) -> Target:
    return resolve(wanted, host, probe).target


def does_not_load(ep: str) -> EPUnavailableError:
    return EPUnavailableError(f"execution provider `{ep}` does not load: entry point not found")


@pytest.fixture
def windows(tmp_path: Path) -> Host:
    """Windows with Windows ML, which brings qnn, openvino, vitisai, nvtensorrtrtx and migraphx."""
    return Host(
        "Windows", "amd64", {"onnxruntime": tmp_path, "windowsml": tmp_path}, frozenset({"onnxruntime"})
    )  # fmt: skip


@pytest.fixture
def linux_qnn(tmp_path: Path) -> Host:
    """Linux x86_64 with the QNN package, whose NPU is a simulator."""
    (tmp_path / "libonnxruntime_providers_qnn.so").touch()
    return Host(
        "Linux", "x86_64", {"onnxruntime": tmp_path, "onnxruntime_qnn": tmp_path}, frozenset({"onnxruntime"})
    )  # fmt: skip


@pytest.fixture
def linux_plain(tmp_path: Path) -> Host:
    return Host("Linux", "x86_64", {"onnxruntime": tmp_path}, frozenset({"onnxruntime"}))


EMPTY = Host("Linux", "x86_64")

# auto


def test_auto_picks_the_npu_first(windows: Host) -> None:
    probe = FakeProbe(qnn=("npu", "gpu"), nvtensorrtrtx=("gpu",), openvino=("gpu", "cpu"))
    assert chosen(ANYTHING, windows, probe) == Target("qnn", "npu")


def test_auto_picks_the_npu_of_whichever_ep_has_one(windows: Host) -> None:
    assert chosen(ANYTHING, windows, FakeProbe(qnn=("gpu",), vitisai=("npu",))) == Target("vitisai", "npu")


def test_auto_picks_a_gpu_where_there_is_no_npu(windows: Host) -> None:
    probe = FakeProbe(openvino=("gpu", "cpu"), migraphx=("gpu",))
    assert chosen(ANYTHING, windows, probe) == Target("migraphx", "gpu")


def test_auto_picks_the_cpu_of_the_runtime_where_there_is_nothing_else(windows: Host) -> None:
    assert chosen(ANYTHING, windows, FakeProbe(openvino=("cpu",))) == Target("cpu", "cpu")


def test_auto_does_not_probe_the_cpu(linux_plain: Host) -> None:
    probe = FakeProbe()
    assert chosen(ANYTHING, linux_plain, probe) == Target("cpu", "cpu")
    assert probe.asked == []


def test_auto_never_picks_a_simulated_device(linux_qnn: Host) -> None:
    # What the real package answers there: the CPU it simulates on.
    assert chosen(ANYTHING, linux_qnn, FakeProbe(qnn=("cpu",))) == Target("cpu", "cpu")


def test_auto_never_picks_a_simulated_device_that_the_ep_lists_as_if_it_were_real(linux_qnn: Host) -> None:
    assert chosen(ANYTHING, linux_qnn, FakeProbe(qnn=("npu",))) == Target("cpu", "cpu")


def test_auto_never_picks_a_simulated_device_even_when_nothing_else_is_here(linux_qnn: Host) -> None:
    without_runtime = {"onnxruntime_qnn": linux_qnn.module_dirs["onnxruntime_qnn"]}
    with pytest.raises(EPUnavailableError):
        chosen(ANYTHING, Host("Linux", "x86_64", without_runtime), FakeProbe(qnn=("cpu",)))


def test_auto_takes_the_real_gpu_of_an_ep_whose_npu_is_simulated(linux_qnn: Host) -> None:
    assert chosen(ANYTHING, linux_qnn, FakeProbe(qnn=("gpu",))) == Target("qnn", "gpu")


def test_auto_skips_an_ep_that_does_not_load(windows: Host) -> None:
    probe = FakeProbe(qnn=does_not_load("qnn"), openvino=("npu", "cpu"))
    assert chosen(ANYTHING, windows, probe) == Target("openvino", "npu")


def test_auto_falls_to_the_cpu_when_no_ep_loads(windows: Host) -> None:
    names = ("qnn", "openvino", "vitisai", "nvtensorrtrtx", "migraphx")
    probe = FakeProbe(**{ep: does_not_load(ep) for ep in names})
    assert chosen(ANYTHING, windows, probe) == Target("cpu", "cpu")
    assert set(probe.asked) == set(names)


def test_nothing_at_all_is_unavailable_with_exit_3() -> None:
    with pytest.raises(EPUnavailableError) as caught:
        chosen(ANYTHING, EMPTY, FakeProbe())
    assert caught.value.exit_code == 3
    assert caught.value.message == "no execution provider on this machine drives a npu, gpu or cpu"
    assert caught.value.hint == "`winml sys` shows why each provider was rejected"


# --device alone


def test_an_npu_alone_means_the_simulated_one_of_qnn_on_linux(linux_qnn: Host) -> None:
    probe = FakeProbe(qnn=("cpu",))
    assert chosen(asked(None, "npu"), linux_qnn, probe) == Target("qnn", "npu", simulated=True)
    assert probe.asked == []


def test_an_npu_alone_means_qnn_first(windows: Host) -> None:
    probe = FakeProbe(qnn=("npu",), openvino=("npu",), vitisai=("npu",))
    assert chosen(asked(None, "npu"), windows, probe) == Target("qnn", "npu")


def test_a_gpu_alone_skips_an_ep_that_does_not_load(windows: Host) -> None:
    probe = FakeProbe(nvtensorrtrtx=does_not_load("nvtensorrtrtx"), qnn=("gpu",))
    assert chosen(asked(None, "gpu"), windows, probe) == Target("qnn", "gpu")


def test_a_cpu_alone_means_the_runtime_itself(windows: Host) -> None:
    probe = FakeProbe(openvino=("cpu",))
    assert chosen(asked(None, "cpu"), windows, probe) == Target("cpu", "cpu")
    assert probe.asked == []


@pytest.mark.parametrize("device", ["npu", "gpu"])
def test_a_device_that_is_not_here_is_unavailable_rather_than_replaced(linux_plain: Host, device: Device) -> None:
    with pytest.raises(EPUnavailableError) as caught:
        chosen(asked(None, device), linux_plain, FakeProbe())
    assert caught.value.message == f"no execution provider on this machine drives a {device}"
    assert caught.value.exit_code == 3


# --ep alone, and both


def test_qnn_alone_means_its_simulated_npu_on_linux(linux_qnn: Host) -> None:
    assert chosen(asked("qnn"), linux_qnn, FakeProbe(qnn=("cpu",))) == Target("qnn", "npu", simulated=True)


def test_qnn_with_npu_means_the_simulated_one_on_linux_without_asking(linux_qnn: Host) -> None:
    probe = FakeProbe(qnn=("cpu",))
    assert chosen(asked("qnn", "npu"), linux_qnn, probe) == Target("qnn", "npu", simulated=True)
    assert probe.asked == []


def test_an_ep_alone_prefers_a_real_device_to_a_simulated_one(linux_qnn: Host) -> None:
    assert chosen(asked("qnn"), linux_qnn, FakeProbe(qnn=("gpu",))) == Target("qnn", "gpu")


def test_an_ep_alone_and_with_its_npu_give_the_same_target(linux_qnn: Host) -> None:
    probe = FakeProbe(qnn=("npu",))
    assert chosen(asked("qnn"), linux_qnn, probe) == chosen(asked("qnn", "npu"), linux_qnn, probe)


@pytest.mark.parametrize(
    ("here", "expected"), [(("cpu", "gpu", "npu"), "npu"), (("cpu", "gpu"), "gpu"), (("cpu",), "cpu")]
)
def test_an_ep_alone_means_its_best_device_here(windows: Host, here: tuple[Device, ...], expected: Device) -> None:
    assert chosen(asked("openvino"), windows, FakeProbe(openvino=here)) == Target("openvino", expected)


def test_an_ep_with_a_device_means_that_device(windows: Host) -> None:
    probe = FakeProbe(openvino=("npu", "gpu", "cpu"))
    assert chosen(asked("openvino", "cpu"), windows, probe) == Target("openvino", "cpu")


def test_only_the_named_ep_is_probed(windows: Host) -> None:
    probe = FakeProbe(openvino=("gpu",), qnn=("npu",))
    chosen(asked("openvino"), windows, probe)
    assert probe.asked == ["openvino"]


def test_the_named_cpu_is_not_probed(linux_plain: Host) -> None:
    probe = FakeProbe()
    assert chosen(asked("cpu"), linux_plain, probe) == Target("cpu", "cpu")
    assert chosen(asked("cpu", "cpu"), linux_plain, probe) == Target("cpu", "cpu")
    assert probe.asked == []


@pytest.mark.parametrize("device", ["npu", "gpu", None])
def test_a_named_ep_that_does_not_load_is_an_error(windows: Host, device: Device | None) -> None:
    with pytest.raises(EPUnavailableError, match="does not load: entry point not found"):
        chosen(asked("qnn", device), windows, FakeProbe(qnn=does_not_load("qnn")))


def test_a_named_ep_whose_simulator_does_not_load_is_an_error(linux_qnn: Host) -> None:
    with pytest.raises(EPUnavailableError, match="does not load"):
        chosen(asked("qnn"), linux_qnn, FakeProbe(qnn=does_not_load("qnn")))


def test_a_named_ep_that_is_not_installed_says_why_and_what_to_do(linux_plain: Host) -> None:
    with pytest.raises(EPUnavailableError) as caught:
        chosen(asked("qnn", "npu"), linux_plain, FakeProbe())
    assert caught.value.exit_code == 3
    assert caught.value.message == "execution provider `qnn` is not available: `onnxruntime-qnn` is not installed"
    assert caught.value.hint == (
        'install it with `pip install "winml-modelkit[qnn]"`; `winml sys` shows why each provider was rejected'
    )


def test_a_named_ep_of_another_system_points_to_sys_alone(linux_plain: Host) -> None:
    with pytest.raises(EPUnavailableError) as caught:
        chosen(asked("dml"), linux_plain, FakeProbe())
    assert caught.value.message == (
        "execution provider `dml` is not available: exists for Windows, not for Linux x86_64"
    )
    assert caught.value.hint == "`winml sys` shows why each provider was rejected"


def test_a_named_device_the_ep_does_not_find_is_unavailable(windows: Host) -> None:
    with pytest.raises(EPUnavailableError) as caught:
        chosen(asked("openvino", "npu"), windows, FakeProbe(openvino=("gpu", "cpu")))
    assert caught.value.message == "execution provider `openvino` has no npu on this machine"
    assert caught.value.hint == "`winml sys` shows what this machine has"
    assert caught.value.exit_code == 3


def test_a_real_device_missing_beside_a_simulated_one_is_unavailable(linux_qnn: Host) -> None:
    with pytest.raises(EPUnavailableError, match="`qnn` has no gpu on this machine"):
        chosen(asked("qnn", "gpu"), linux_qnn, FakeProbe(qnn=("cpu",)))


def test_a_named_ep_without_any_device_is_not_replaced_by_the_cpu(windows: Host) -> None:
    with pytest.raises(EPUnavailableError, match="`qnn` has no npu or gpu on this machine"):
        chosen(asked("qnn"), windows, FakeProbe(qnn=()))


# EPs that cannot tell their devices


def with_cuda(host: Host) -> Host:
    return dataclasses.replace(host, distributions=frozenset({"onnxruntime-gpu"}))


@pytest.mark.parametrize("wanted", [asked("cuda"), asked("cuda", "gpu"), asked(None, "gpu")])
def test_a_device_nobody_can_ask_about_is_tried_when_it_was_named(linux_plain: Host, wanted: TargetRequest) -> None:
    assert chosen(wanted, with_cuda(linux_plain), FakeProbe(cuda=None)) == Target("cuda", "gpu")


def test_a_device_nobody_can_ask_about_is_passed_over_by_auto(linux_plain: Host) -> None:
    assert chosen(ANYTHING, with_cuda(linux_plain), FakeProbe(cuda=None)) == Target("cpu", "cpu")


# Which installation it is used with


class ProbeByPackage:
    """Answers by the package an EP comes from."""

    def __init__(self, **answers: Answer) -> None:
        self._answers = answers

    def __call__(self, found: Installed) -> tuple[Device, ...] | None:
        answer = self._answers[found.package.kind]
        if isinstance(answer, EPUnavailableError):
            raise answer
        return answer


@pytest.fixture
def windows_twice(tmp_path: Path) -> Host:
    """Windows with QNN from its own package and from Windows ML."""
    (tmp_path / "onnxruntime_providers_qnn.dll").touch()
    dirs = dict.fromkeys(("onnxruntime", "onnxruntime_qnn", "windowsml"), tmp_path)
    return Host("Windows", "arm64", dirs, frozenset({"onnxruntime"}))


@pytest.mark.parametrize("wanted", [asked("qnn"), asked("qnn", "npu"), asked(None, "npu"), ANYTHING])
@pytest.mark.parametrize(
    ("plugin", "used"),
    [
        (("npu", "gpu"), "plugin"),
        (("cpu",), "windowsml"),
        (does_not_load("qnn"), "windowsml"),
    ],
)
def test_the_first_installation_that_has_the_device_is_used(
    windows_twice: Host, wanted: TargetRequest, plugin: Answer, used: str
) -> None:
    found = resolve(wanted, windows_twice, ProbeByPackage(plugin=plugin, windowsml=("npu",)))
    assert found.target == Target("qnn", "npu")
    assert found.installed.package.kind == used


def test_a_named_ep_that_loads_from_nowhere_says_why(windows_twice: Host) -> None:
    broken = ProbeByPackage(plugin=does_not_load("qnn"), windowsml=does_not_load("qnn"))
    with pytest.raises(EPUnavailableError, match="does not load: entry point not found"):
        resolve(asked("qnn"), windows_twice, broken)


def test_an_ep_in_an_environment_of_its_own_is_used_with_its_interpreter(linux_plain: Host, tmp_path: Path) -> None:
    environment = PrivateEnvironment("openvino", "onnxruntime-openvino", "1.24.1", tmp_path / "openvino")
    host = dataclasses.replace(linux_plain, environments=(environment,))
    found = resolve(asked("openvino", "cpu"), host, FakeProbe(openvino=("cpu",)))
    assert found.target == Target("openvino", "cpu")
    assert found.installed.python == str(environment.python)
