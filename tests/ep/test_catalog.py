"""Conformance of every row of the table of execution providers."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import DEVICES, Target
from winml.modelkit.ep import catalog
from winml.modelkit.ep.catalog import AUTO_DEVICES, BY_NAME, DEVICE_EPS, TABLE, EPInfo, Option, Package
from winml.modelkit.ep.options import check_options

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
SYSTEMS = get_args(catalog.System)
SUFFIX = {"Linux": ".so", "Windows": ".dll", "Darwin": ".dylib"}
PREFIX = {"Linux": "lib", "Windows": "", "Darwin": "lib"}
MACHINES = {"x86_64", "amd64", "arm64", "aarch64"}

every_ep = pytest.mark.parametrize("info", TABLE, ids=lambda info: info.name)
PACKAGES = [(info, package) for info in TABLE for package in info.packages]


def packages(rows: list[tuple[EPInfo, Package]]) -> pytest.MarkDecorator:
    named = [pytest.param(info, package, id=f"{info.name}-{package.distribution}") for info, package in rows]
    return pytest.mark.parametrize(("info", "package"), named)


every_package = packages(PACKAGES)
every_plugin = packages([row for row in PACKAGES if row[1].kind == "plugin"])
every_extra = packages([row for row in PACKAGES if row[1].extra is not None])
every_option = pytest.mark.parametrize(
    ("info", "name", "option"),
    [pytest.param(info, k, option, id=f"{info.name}-{k}") for info in TABLE for k, option in info.options.items()],
)


def names_of(info: EPInfo) -> set[str]:
    """All spellings of an EP that a user may write, in lower case."""
    short = info.full_name.removesuffix("ExecutionProvider")
    return {name.casefold() for name in (info.name, *info.aliases, info.full_name, short)}


def test_no_two_eps_share_a_name_or_an_alias_in_any_case() -> None:
    counted = Counter(name for info in TABLE for name in names_of(info))
    assert [name for name, count in counted.items() if count > 1] == []


@every_ep
def test_no_alias_repeats_the_name(info: EPInfo) -> None:
    listed = [info.name, *info.aliases]
    assert len({name.casefold() for name in listed}) == len(listed)


@every_ep
def test_names_are_short_and_in_lower_case(info: EPInfo) -> None:
    assert info.name == info.name.lower()
    assert "/" not in info.name
    assert info.full_name.endswith("ExecutionProvider")


@every_ep
def test_no_name_means_leaving_the_choice_open(info: EPInfo) -> None:
    assert not names_of(info) & {"auto", ""}


@every_ep
def test_devices_are_known_and_listed_once(info: EPInfo) -> None:
    assert info.devices
    assert set(info.devices) <= set(DEVICES)
    assert len(set(info.devices)) == len(info.devices)


@every_ep
def test_every_device_of_an_ep_lists_the_ep(info: EPInfo) -> None:
    assert [d for d in info.devices if info.name not in DEVICE_EPS[d]] == []


@pytest.mark.parametrize("device", DEVICES)
def test_every_ep_listed_for_a_device_drives_it(device: str) -> None:
    eps = DEVICE_EPS[device]  # type: ignore[index]
    assert eps
    assert len(set(eps)) == len(eps)
    assert [ep for ep in eps if device not in BY_NAME[ep].devices] == []


def test_auto_looks_at_every_kind_of_device_in_the_order_of_the_contract() -> None:
    assert AUTO_DEVICES == ("npu", "gpu", "cpu")


def test_an_npu_without_an_ep_means_qnn_first_and_a_cpu_the_runtime_itself() -> None:
    assert DEVICE_EPS["npu"][0] == "qnn"
    assert DEVICE_EPS["cpu"][0] == "cpu"


@every_ep
def test_device_options_are_options_of_the_ep_that_pass_the_checker(info: EPInfo) -> None:
    assert set(info.device_options) <= set(info.devices)
    for device, fixed in info.device_options.items():
        assert set(fixed) <= set(info.options)
        assert check_options(Target(info.name, device), fixed) == fixed


@every_ep
def test_device_options_are_given_for_all_devices_or_for_none(info: EPInfo) -> None:
    assert set(info.device_options) in (set(), set(info.devices))


@every_ep
def test_simulator_options_are_options_of_the_ep_that_pass_the_checker(info: EPInfo) -> None:
    assert set(info.simulator_options) <= set(info.options)
    for device in info.simulated_on:
        assert (
            check_options(Target(info.name, device, simulated=True), info.simulator_options) == info.simulator_options
        )


@every_ep
def test_simulators_are_of_devices_the_ep_drives_on_systems_it_has_a_package_for(info: EPInfo) -> None:
    assert set(info.simulated_on) <= set(info.devices)
    assert bool(info.simulator_options) <= bool(info.simulated_on)
    for system, machine in (place for places in info.simulated_on.values() for place in places):
        assert any(system in p.systems and (not p.machines or machine in p.machines) for p in info.packages)


@every_ep
def test_preferred_precisions_are_of_devices_the_ep_drives(info: EPInfo) -> None:
    assert set({**info.auto_precision, **info.unquantized}) <= set(info.devices)


@every_ep
def test_an_ep_that_quantizes_by_itself_has_no_preferred_precision(info: EPInfo) -> None:
    assert not (info.native_quantization and info.auto_precision)


@every_ep
def test_libraries_are_named_as_their_system_names_them(info: EPInfo) -> None:
    for system, library in info.libraries.items():
        assert library.startswith(PREFIX[system])
        assert library.endswith(SUFFIX[system])
        assert "/" not in library
        assert "\\" not in library


@every_plugin
def test_a_plugin_has_a_library_on_each_of_its_systems(info: EPInfo, package: Package) -> None:
    assert set(package.systems) <= set(info.libraries)


@every_package
def test_a_package_is_of_a_known_kind_for_known_systems_and_machines(info: EPInfo, package: Package) -> None:
    assert package.kind in get_args(catalog.PackageKind)
    assert package.systems
    assert set(package.systems) <= set(SYSTEMS)
    assert len(set(package.systems)) == len(package.systems)
    assert set(package.machines) <= MACHINES


@every_package
def test_a_package_of_windows_ml_is_for_windows_alone(info: EPInfo, package: Package) -> None:
    from_windows_ml = package.kind == "windowsml"
    assert from_windows_ml == (package.distribution == "windowsml")
    if from_windows_ml:
        assert package.systems == ("Windows",)
        assert package.module == "windowsml"


@every_package
def test_a_plugin_is_a_module_of_its_own_and_a_bundle_replaces_onnxruntime(info: EPInfo, package: Package) -> None:
    is_runtime = package.module == "onnxruntime"
    assert is_runtime == (package.kind in ("builtin", "bundled"))


@every_package
def test_distributions_are_spelt_as_installers_normalise_them(info: EPInfo, package: Package) -> None:
    assert package.distribution == package.distribution.lower().replace("_", "-")


@every_extra
def test_an_extra_brings_the_distribution(info: EPInfo, package: Package) -> None:
    extras = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    assert any(requirement.startswith(package.distribution) for requirement in extras[package.extra])


@every_option
def test_an_option_has_what_its_type_needs(info: EPInfo, name: str, option: Option) -> None:
    assert option.type in get_args(catalog.OptionType)
    if option.type == "choice":
        assert len({c.casefold() for c in option.choices}) == len(option.choices) > 1
    if option.type not in ("int", "ints"):
        assert option.low is None
        assert option.high is None
    elif option.choices:
        assert all(c.isdigit() for c in option.choices)
    if option.low is not None and option.high is not None:
        assert option.low < option.high
    assert name == name.strip()
    assert "=" not in name


@every_ep
def test_find_takes_name_alias_and_full_name(info: EPInfo) -> None:
    written = [info.name, *info.aliases, info.full_name, info.full_name.removesuffix("ExecutionProvider")]
    assert [catalog.find(name) for name in written] == [info] * len(written)


@settings(deadline=None)
@given(st.data())
def test_find_takes_every_name_in_any_case_and_with_spaces_around_it(data: st.DataObject) -> None:
    info = data.draw(st.sampled_from(TABLE))
    name = data.draw(st.sampled_from([info.name, *info.aliases, info.full_name]))
    upper = data.draw(st.lists(st.booleans(), min_size=len(name), max_size=len(name)))
    written = "".join(c.upper() if u else c.lower() for c, u in zip(name, upper, strict=True))
    spaces = st.sampled_from(["", " ", "\t"])
    assert catalog.find(data.draw(spaces) + written + data.draw(spaces)) is info


@pytest.mark.parametrize(
    ("written", "meant"), [("qnnn", "qnn"), ("OpenVin", "openvino"), ("vitis_ai", "vitisai"), ("web-gpu", "webgpu")]
)
def test_an_unknown_name_suggests_the_nearest(written: str, meant: str) -> None:
    with pytest.raises(RequestError) as caught:
        catalog.find(written)
    assert caught.value.message == f"unknown execution provider `{written}`"
    known = ", ".join(f"`{name}`" for name in sorted(catalog.BY_NAME))
    assert caught.value.hint == f"did you mean `{meant}`? known: {known}"


@pytest.mark.parametrize("written", ["", " ", "tpu9000", "ExecutionProvider", "auto", "qnn/npu"])
def test_an_unknown_name_lists_what_is_known(written: str) -> None:
    with pytest.raises(RequestError) as caught:
        catalog.find(written)
    assert all(f"`{info.name}`" in (caught.value.hint or "") for info in TABLE)


@pytest.mark.parametrize("device", ["npu", "gpu"])
def test_a_device_written_as_an_ep_is_not_taken_for_a_misspelt_ep(device: str) -> None:
    with pytest.raises(RequestError) as caught:
        catalog.find(device)
    assert "did you mean" not in (caught.value.hint or "")


@settings(deadline=None)
@given(st.text(max_size=60))
def test_find_of_any_text_is_a_row_or_a_wrong_request(text: str) -> None:
    try:
        found = catalog.find(text)
    except RequestError:
        return
    assert text.strip().casefold() in names_of(found)
