"""Names that every feed takes, whatever a model is called."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import DEVICES
from winml.modelkit.ep import catalog
from winml.modelkit.feed import names

AZURE = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)-([0-9a-z-]+)")
TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
stamps = st.from_regex(r"[0-9a-z]{1,32}", fullmatch=True)
targets = st.one_of(
    st.just((None, None)), st.tuples(st.sampled_from(sorted(catalog.BY_NAME)), st.sampled_from(sorted(DEVICES)))
)


def test_a_version_reads_as_in_the_examples() -> None:
    slug = names.slug("microsoft/resnet-50", "image-classification")
    assert (
        slug
        == names.package("microsoft/resnet-50", "image-classification")
        == "microsoft-resnet-50-image-classification"
    )
    assert names.version("20260609", slug, ep="qnn", device="npu") == f"0.0.0-20260609-qnn-npu-{slug}"
    assert names.version("20260609", slug) == f"0.0.0-20260609-{slug}"


@given(st.text(min_size=1, max_size=400), st.none() | st.text(max_size=60), stamps, targets)
def test_every_model_has_a_version_and_a_package_that_all_feeds_take(
    model: str, task: str | None, stamp: str, target: tuple[str | None, str | None]
) -> None:
    slug = names.slug(model, task)
    version = names.version(stamp, slug, ep=target[0], device=target[1])
    assert AZURE.fullmatch(version)
    assert TAG.fullmatch(version)
    assert len(version) < 128
    assert version == version.lower()
    package = names.package(model, task)
    assert names.check_package(package) == package
    assert len(package) <= names.PACKAGE_LIMIT


@given(stamps, st.sampled_from(sorted(catalog.BY_NAME)), st.sampled_from(sorted(DEVICES)), st.text(min_size=1))
def test_a_version_tells_its_parts(stamp: str, ep: str, device: str, model: str) -> None:
    version = names.version(stamp, names.slug(model), ep=ep, device=device)
    parts = names.parse_version(version)
    assert parts is not None
    assert (parts.stamp, parts.ep, parts.device) == (stamp, ep, device)
    assert parts.folder == f"{ep}_{device}"


@pytest.mark.parametrize(
    "text", ["1.0.0-20260609-m", "0.0.0", "0.0.0-20260609", "latest", "", "0.0.0-UP-m", "0.0.0--m"]
)
def test_a_version_of_somebody_else_has_no_parts(text: str) -> None:
    assert names.parse_version(text) is None


def test_aliases_of_providers_are_known_in_versions() -> None:
    parts = names.parse_version("0.0.0-20260609-ov-npu-resnet")
    assert parts is not None
    assert parts.folder == "ov_npu"


def test_a_model_that_starts_like_a_target_has_none() -> None:
    assert names.parse_version("0.0.0-20260609-acme-cpu-net") == names.VersionParts("20260609", "acme-cpu-net")


def test_two_tasks_of_one_model_do_not_collide() -> None:
    assert names.package("bert", "fill-mask") != names.package("bert", "text-classification") != names.package("bert")


def test_long_names_that_differ_at_the_end_stay_apart() -> None:
    first, second = ("x" * 300 + end for end in "ab")
    for made in (names.package, lambda m: names.version("20260609", names.slug(m), ep="qnn", device="npu")):
        assert made(first) != made(second)
        assert made(first)[:90] == made(second)[:90]


@pytest.mark.parametrize(("first", "second"), [("模型", "模形"), ("größe", "grüße"), ("a*b", "a+b"), ("!", "?")])
def test_characters_that_have_no_place_leave_a_hash(first: str, second: str) -> None:
    assert names.slug(first) != names.slug(second)


@pytest.mark.parametrize("stamp", ["", "2026-06-09", "20260609T12", "x" * 33, "a b", "ä"])
def test_a_stamp_that_cannot_be_read_back_is_refused(stamp: str) -> None:
    with pytest.raises(RequestError, match="run stamp must be"):
        names.version(stamp, "m")


@pytest.mark.parametrize(
    "text",
    [
        "1.0",
        "1.0.0+build",
        "1.0.0-A",
        "01.0.0",
        "1.0.0-x.01",
        "2147483648.0.0",
        "1.0.0-" + "x" * 122,
        "v1.0.0",
        "1.0.0-ü",
        "",
    ],
)
def test_versions_that_azure_refuses_are_refused_before_it_is_asked(text: str) -> None:
    with pytest.raises(RequestError, match="invalid version"):
        names.check_version(text)


@pytest.mark.parametrize("name", ["", "A", "a--b", "-a", "a-", "a/b", "a..b", "ä", "a b", "x" * 256])
def test_package_names_that_some_feed_refuses_are_refused(name: str) -> None:
    with pytest.raises(RequestError, match="invalid package name"):
        names.check_package(name)


def test_a_second_content_under_a_stamp_has_a_number_that_is_read_back() -> None:
    second = names.version("20260609", "resnet-50", ep="qnn", device="npu", revision=2)
    assert second == "0.0.0-20260609-qnn-npu-resnet-50.2"
    assert names.parse_version(second) == names.VersionParts("20260609", "resnet-50", "qnn", "npu", 2)
    plain = names.version("1", "m" * 300, revision=12)
    assert plain.endswith(".12")
    assert len(plain) <= names.VERSION_LIMIT
    assert names.parse_version(plain) == names.VersionParts("1", names.parse_version(plain).slug, revision=12)  # type: ignore[union-attr]


def test_a_model_named_like_a_device_of_windows_gets_a_package_that_can_be_a_folder_there() -> None:
    made = names.package("aux")
    assert made.startswith("aux-")
    assert names.check_package(made) == made
