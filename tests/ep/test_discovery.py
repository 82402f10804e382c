"""What is installed, on hosts made by hand out of real folders."""

from __future__ import annotations

import dataclasses
import platform
from pathlib import Path

import onnxruntime
import pytest

from winml.modelkit.ep.catalog import BY_NAME, TABLE, Package
from winml.modelkit.ep.discovery import (
    Host,
    Installed,
    Rejected,
    candidates,
    distribution_version,
    find_simulators,
    look_for,
    this_host,
)
from winml.modelkit.ep.environments import PrivateEnvironment

QNN_LINUX = "libonnxruntime_providers_qnn.so"
QNN_WINDOWS = "onnxruntime_providers_qnn.dll"


def folder(site: Path, module: str, *files: str) -> Path:
    """A module's folder with empty files in it."""
    made = site / module
    made.mkdir(parents=True, exist_ok=True)
    for file in files:
        (made / file).parent.mkdir(parents=True, exist_ok=True)
        (made / file).touch()
    return made


def linux(site: Path, *, machine: str = "x86_64", **modules: tuple[str, ...]) -> Host:
    """A Linux host with onnxruntime and these modules, each with its files."""
    dirs = {name: folder(site, name, *files) for name, files in {"onnxruntime": (), **modules}.items()}
    return Host("Linux", machine, dirs, frozenset({"onnxruntime"}))


def windows(site: Path, *, machine: str = "amd64", **modules: tuple[str, ...]) -> Host:
    """A Windows host with onnxruntime and these modules, each with its files."""
    dirs = {name: folder(site, name, *files) for name, files in {"onnxruntime": (), **modules}.items()}
    return Host("Windows", machine, dirs, frozenset({"onnxruntime"}))


def installed(ep: str, host: Host) -> Installed:
    found = look_for(BY_NAME[ep], host)
    assert isinstance(found, Installed), found
    return found


def rejected(ep: str, host: Host) -> Rejected:
    found = look_for(BY_NAME[ep], host)
    assert isinstance(found, Rejected), found
    return found


# Plugins


def test_a_plugin_is_found_with_its_library(tmp_path: Path) -> None:
    found = installed("qnn", linux(tmp_path, onnxruntime_qnn=(QNN_LINUX,)))
    assert found.package.distribution == "onnxruntime-qnn"
    assert found.library == tmp_path / "onnxruntime_qnn" / QNN_LINUX


def test_the_npu_of_qnn_is_simulated_on_linux_with_x86(tmp_path: Path) -> None:
    assert installed("qnn", linux(tmp_path, onnxruntime_qnn=(QNN_LINUX,))).simulated == ("npu",)


def test_nothing_is_simulated_on_windows(tmp_path: Path) -> None:
    host = windows(tmp_path, onnxruntime_qnn=(QNN_WINDOWS,))
    assert installed("qnn", host).simulated == ()
    assert [find_simulators(info, host) for info in TABLE] == [()] * len(TABLE)


def test_a_plugin_that_is_not_installed_says_what_to_install(tmp_path: Path) -> None:
    found = rejected("qnn", linux(tmp_path))
    assert found.reason == "`onnxruntime-qnn` is not installed"
    assert found.hint == 'install it with `pip install "winml-modelkit[qnn]"`'


def test_a_plugin_without_an_extra_is_installed_by_its_own_name(tmp_path: Path) -> None:
    found = rejected("webgpu", linux(tmp_path))
    assert found.reason == "`onnxruntime-ep-webgpu` or `onnxruntime-webgpu` is not installed"
    assert found.hint == "install it with `pip install onnxruntime-ep-webgpu` or `winml ep install webgpu`"


def test_a_plugin_that_lacks_its_library_names_it(tmp_path: Path) -> None:
    found = rejected("qnn", linux(tmp_path, onnxruntime_qnn=("__init__.py",)))
    assert found.reason == f"`onnxruntime-qnn` lacks its library `{QNN_LINUX}`"


def test_a_folder_named_like_the_library_is_not_the_library(tmp_path: Path) -> None:
    host = linux(tmp_path, onnxruntime_qnn=(f"{QNN_LINUX}/inside",))
    assert "lacks its library" in rejected("qnn", host).reason


def test_the_library_of_another_system_is_not_taken(tmp_path: Path) -> None:
    assert "lacks its library" in rejected("qnn", linux(tmp_path, onnxruntime_qnn=(QNN_WINDOWS,))).reason


def test_a_plugin_that_lacks_its_library_is_to_be_installed_again(tmp_path: Path) -> None:
    found = rejected("qnn", linux(tmp_path, onnxruntime_qnn=("__init__.py",)))
    assert "--force-reinstall" in (found.hint or "")


def test_a_library_in_a_folder_per_architecture_is_found(tmp_path: Path) -> None:
    host = windows(tmp_path, machine="arm64", onnxruntime_qnn=(f"arm64/{QNN_WINDOWS}",))
    assert installed("qnn", host).library == tmp_path / "onnxruntime_qnn" / "arm64" / QNN_WINDOWS


def test_a_library_beside_the_module_wins_over_one_in_a_subfolder(tmp_path: Path) -> None:
    host = windows(tmp_path, machine="arm64", onnxruntime_qnn=(f"arm64/{QNN_WINDOWS}", QNN_WINDOWS))
    assert installed("qnn", host).library == tmp_path / "onnxruntime_qnn" / QNN_WINDOWS


@pytest.mark.parametrize(("machine", "architecture"), [("amd64", "amd64"), ("arm64", "arm64ec")])
def test_the_layout_of_the_wheel_for_windows_on_x64_is_found(tmp_path: Path, machine: str, architecture: str) -> None:
    # onnxruntime_qnn-2.7.0-cp311-cp311-win_amd64.whl, where arm64ec is for x64 programs on an Arm machine.
    files = tuple(f"libs/{a}/{QNN_WINDOWS}" for a in ("amd64", "arm64ec"))
    host = windows(tmp_path, machine=machine, onnxruntime_qnn=files)
    assert installed("qnn", host).library == tmp_path / "onnxruntime_qnn" / "libs" / architecture / QNN_WINDOWS


# Machines and systems an EP does not exist for


def test_an_ep_for_another_system_says_so_and_offers_nothing_to_install(tmp_path: Path) -> None:
    found = rejected("dml", linux(tmp_path))
    assert found.reason == "exists for Windows, not for Linux x86_64"
    assert found.hint is None


def test_an_ep_for_another_machine_names_this_one(tmp_path: Path) -> None:
    found = rejected("openvino", linux(tmp_path, machine="aarch64", onnxruntime_ep_openvino=("x.so",)))
    assert found.reason.endswith("not for Linux aarch64")
    assert found.hint is None


def test_an_ep_for_another_machine_says_for_which(tmp_path: Path) -> None:
    assert "x86_64" in rejected("openvino", linux(tmp_path, machine="aarch64")).reason


def test_there_is_no_simulator_on_linux_with_arm(tmp_path: Path) -> None:
    assert find_simulators(BY_NAME["qnn"], linux(tmp_path, machine="aarch64")) == ()


def test_on_a_mac_the_cpu_and_webgpu_are_all_there_can_be(tmp_path: Path) -> None:
    dirs = {
        "onnxruntime": folder(tmp_path, "onnxruntime"),
        "onnxruntime_ep_webgpu": folder(
            tmp_path, "onnxruntime_ep_webgpu", "libonnxruntime_providers_webgpu.dylib"
        ),
    }  # fmt: skip
    host = Host("Darwin", "arm64", dirs, frozenset({"onnxruntime"}))
    assert [info.name for info in TABLE if isinstance(look_for(info, host), Installed)] == ["cpu", "webgpu"]


# Builds of onnxruntime that bring an EP


def bundle(site: Path, distribution: str) -> Host:
    return Host("Linux", "x86_64", {"onnxruntime": folder(site, "onnxruntime")}, frozenset({distribution}))


def test_a_bundled_ep_is_found_by_its_distribution(tmp_path: Path) -> None:
    found = installed("cuda", bundle(tmp_path, "onnxruntime-gpu"))
    assert found.package.kind == "bundled"
    assert found.library is None


def test_a_plain_onnxruntime_does_not_bring_a_bundled_ep(tmp_path: Path) -> None:
    found = rejected("cuda", bundle(tmp_path, "onnxruntime"))
    assert found.reason == "`onnxruntime-gpu` is not installed"
    assert found.hint == "install it with `winml ep install cuda`"


def test_a_bundle_also_has_the_cpu(tmp_path: Path) -> None:
    assert installed("cpu", bundle(tmp_path, "onnxruntime-gpu")).library is None


def test_a_bundle_is_used_where_the_plugin_is_missing(tmp_path: Path) -> None:
    assert installed("openvino", bundle(tmp_path, "onnxruntime-openvino")).package.kind == "bundled"


def test_the_plugin_is_preferred_to_the_bundle(tmp_path: Path) -> None:
    library = "libonnxruntime_providers_openvino_plugin.so"
    dirs = {
        "onnxruntime": folder(tmp_path, "onnxruntime"),
        "onnxruntime_ep_openvino": folder(tmp_path, "onnxruntime_ep_openvino", library),
    }
    host = Host("Linux", "x86_64", dirs, frozenset({"onnxruntime-openvino"}))
    assert installed("openvino", host).package.kind == "plugin"


def test_a_plugin_without_its_library_and_a_missing_bundle_are_both_told(tmp_path: Path) -> None:
    found = rejected("openvino", linux(tmp_path, onnxruntime_ep_openvino=("__init__.py",)))
    assert found.reason == (
        "`onnxruntime-ep-openvino` lacks its library `libonnxruntime_providers_openvino_plugin.so`; "
        "`onnxruntime-openvino` is not installed"
    )


def test_without_onnxruntime_not_even_the_cpu_is_here() -> None:
    found = rejected("cpu", Host("Linux", "x86_64"))
    assert found.reason == "`onnxruntime` is not installed"
    assert found.hint == "install it with `pip install onnxruntime`"


# Windows ML


@pytest.mark.parametrize("ep", ["qnn", "openvino", "vitisai", "nvtensorrtrtx", "migraphx"])
@pytest.mark.parametrize("machine", ["amd64", "arm64"])
def test_windows_ml_brings_the_eps_of_its_catalog(tmp_path: Path, ep: str, machine: str) -> None:
    found = installed(ep, windows(tmp_path, machine=machine, windowsml=("__init__.py",)))
    assert found.package.kind == "windowsml"
    assert found.library is None
    assert found.simulated == ()


@pytest.mark.parametrize("ep", ["dml", "webgpu", "cuda"])
def test_windows_ml_does_not_bring_other_eps(tmp_path: Path, ep: str) -> None:
    assert "is not installed" in rejected(ep, windows(tmp_path, windowsml=("__init__.py",))).reason


def test_a_plugin_of_its_own_is_preferred_to_windows_ml(tmp_path: Path) -> None:
    host = windows(tmp_path, windowsml=(), onnxruntime_qnn=(QNN_WINDOWS,))
    assert installed("qnn", host).package.kind == "plugin"


def test_windows_ml_steps_in_for_a_plugin_that_lacks_its_library(tmp_path: Path) -> None:
    host = windows(tmp_path, windowsml=(), onnxruntime_qnn=("__init__.py",))
    assert installed("qnn", host).package.kind == "windowsml"


def test_on_windows_every_package_that_would_do_is_named(tmp_path: Path) -> None:
    found = rejected("qnn", windows(tmp_path))
    assert found.reason == "`onnxruntime-qnn` or `windowsml` is not installed"
    assert found.hint == 'install it with `pip install "winml-modelkit[qnn]"`'


def test_an_ep_that_only_windows_ml_brings_is_installed_through_it(tmp_path: Path) -> None:
    found = rejected("vitisai", windows(tmp_path))
    assert found.reason == "`windowsml` is not installed"
    assert found.hint == "install it with `pip install windowsml`"


def test_windows_ml_is_nothing_on_linux(tmp_path: Path) -> None:
    assert rejected("vitisai", linux(tmp_path, windowsml=())).reason == "exists for Windows, not for Linux x86_64"


# Several installations, and environments of their own


def private(site: Path, ep: str = "openvino", distribution: str = "onnxruntime-openvino") -> PrivateEnvironment:
    return PrivateEnvironment(ep, distribution, "1.24.1", site / "environments" / ep)


def test_every_installation_is_a_candidate_in_the_order_of_the_table(tmp_path: Path) -> None:
    host = windows(tmp_path, windowsml=(), onnxruntime_qnn=(QNN_WINDOWS,))
    found = candidates(BY_NAME["qnn"], host)
    assert not isinstance(found, Rejected)
    assert [f.package.kind for f in found] == ["plugin", "windowsml"]


def test_one_of_several_installations_can_be_named(tmp_path: Path) -> None:
    host = windows(tmp_path, windowsml=(), onnxruntime_qnn=(QNN_WINDOWS,))
    found = look_for(BY_NAME["qnn"], host, "windowsml")
    assert isinstance(found, Installed)
    assert found.package.kind == "windowsml"


def test_an_installation_that_is_named_and_not_here_is_rejected(tmp_path: Path) -> None:
    found = look_for(BY_NAME["qnn"], windows(tmp_path, onnxruntime_qnn=(QNN_WINDOWS,)), "windowsml")
    assert found == Rejected("qnn", "`windowsml` is not installed in this environment", None)


def test_an_ep_in_an_environment_of_its_own_is_a_candidate_after_this_one(tmp_path: Path) -> None:
    library = "libonnxruntime_providers_openvino_plugin.so"
    environment = private(tmp_path)
    host = dataclasses.replace(linux(tmp_path, onnxruntime_ep_openvino=(library,)), environments=(environment,))
    found = candidates(BY_NAME["openvino"], host)
    assert not isinstance(found, Rejected)
    assert [f.environment for f in found] == [None, environment]
    assert [f.python for f in found] == [None, str(environment.python)]
    assert found[1].package.distribution == "onnxruntime-openvino"


def test_an_ep_that_is_only_in_an_environment_of_its_own_is_not_in_this_one(tmp_path: Path) -> None:
    host = dataclasses.replace(linux(tmp_path), environments=(private(tmp_path),))
    assert not isinstance(candidates(BY_NAME["openvino"], host), Rejected)
    assert rejected("openvino", host).reason == "`openvino` is not installed in this environment"


def test_an_environment_is_for_its_own_ep_and_a_package_the_table_knows(tmp_path: Path) -> None:
    environments = (private(tmp_path), private(tmp_path, "cuda", "onnxruntime-unheard-of"))
    host = dataclasses.replace(linux(tmp_path), environments=environments)
    here = [info.name for info in TABLE if not isinstance(candidates(info, host), Rejected)]
    assert here == ["cpu", "openvino"]


# All of them, and this machine


def test_every_ep_is_here_or_says_why_not(tmp_path: Path) -> None:
    host = linux(tmp_path, onnxruntime_qnn=(QNN_LINUX,))
    found = [look_for(info, host) for info in TABLE]
    assert [f.ep for f in found] == [info.name for info in TABLE]
    assert [f.ep for f in found if isinstance(f, Installed)] == ["cpu", "qnn"]
    assert [f.ep for f in found if isinstance(f, Rejected) and not f.reason] == []


def test_this_host_finds_the_onnxruntime_that_is_imported() -> None:
    host = this_host()
    assert host.system == platform.system()
    assert host.machine == platform.machine().lower()
    assert host.module_dirs["onnxruntime"] == Path(onnxruntime.__file__).parent
    assert any(name.startswith("onnxruntime") for name in host.distributions)
    assert isinstance(look_for(BY_NAME["cpu"], host), Installed)


def test_distributions_are_known_by_the_names_the_table_uses() -> None:
    owners = {p.distribution for info in TABLE for p in info.packages if p.module == "onnxruntime"}
    assert this_host().distributions & owners


def test_the_version_of_an_installed_distribution_is_the_one_it_reports() -> None:
    here = Package(
        next(iter(this_host().distributions & {"onnxruntime", "onnxruntime-gpu"})), "onnxruntime", "builtin", ()
    )
    assert distribution_version(here) == onnxruntime.__version__


def test_the_version_of_a_missing_distribution_is_unknown() -> None:
    assert distribution_version(Package("onnxruntime-nowhere", "nowhere", "plugin", ())) is None
