"""Suggestions for misspelt names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.core.suggest import did_you_mean, near_path, nearest

KNOWN = ("soc_model", "htp_arch", "vtcm_mb", "preferredLayout", "NCHW")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("soc_modl", "soc_model"),
        ("soc-model", "soc_model"),
        ("SOC_MODEL", "soc_model"),
        ("htparch", "htp_arch"),
        ("preferredlayout", "preferredLayout"),
        ("nchw", "NCHW"),
        ("nchv", "NCHW"),
    ],
)
def test_nearest_finds_what_was_probably_meant_in_its_own_spelling(written: str, meant: str) -> None:
    assert nearest(written, KNOWN) == meant


@pytest.mark.parametrize("written", ["", "zzz", "cudnn_conv_algo_search"])
def test_nearest_is_none_when_nothing_is_near(written: str) -> None:
    assert nearest(written, KNOWN) is None


def test_nearest_of_nothing_known_is_none() -> None:
    assert nearest("soc_model", ()) is None


def test_nearest_prefers_the_exact_name_to_a_longer_one() -> None:
    assert nearest("gpu", ("webgpu", "gpu", "cpu")) == "gpu"


def test_did_you_mean_names_the_nearest_and_lists_the_rest_in_order() -> None:
    assert did_you_mean("cpuu", ("qnn", "cpu")) == "did you mean `cpu`? known: `cpu`, `qnn`"


def test_did_you_mean_only_lists_when_nothing_is_near() -> None:
    assert did_you_mean("xyz", ("qnn", "cpu")) == "known: `cpu`, `qnn`"


def test_did_you_mean_says_when_nothing_is_known() -> None:
    assert did_you_mean("cpu", ()) == "known: none"


def test_did_you_mean_takes_names_that_can_be_read_once() -> None:
    assert did_you_mean("cpuu", iter(["qnn", "cpu"])) == "did you mean `cpu`? known: `cpu`, `qnn`"


@settings(deadline=None)
@given(st.text(max_size=50))
def test_nearest_of_any_text_is_a_known_name_or_none(text: str) -> None:
    assert nearest(text, KNOWN) in {*KNOWN, None}


def in_any_case(name: str) -> st.SearchStrategy[tuple[str, str]]:
    flags = st.lists(st.booleans(), min_size=len(name), max_size=len(name))
    written = flags.map(lambda up: "".join(c.upper() if u else c.lower() for c, u in zip(name, up, strict=True)))
    return st.tuples(st.just(name), written)


@settings(deadline=None)
@given(st.sampled_from(KNOWN).flatmap(in_any_case))
def test_nearest_finds_a_known_name_in_any_case(name_and_written: tuple[str, str]) -> None:
    name, written = name_and_written
    assert nearest(written, KNOWN) == name


def test_a_name_without_end_is_compared_by_its_beginning() -> None:
    assert nearest("x" * 50_000_000, ["alpha", "beta"]) is None


@pytest.mark.parametrize(
    ("missing", "meant"),
    [
        ("modle.onnx", "model.onnx"),
        ("model.onx", "model.onnx"),
        ("model", "model.onnx"),
        ("dtaa/test.npz", "data/test.npz"),
        ("data/tset.npz", "data/test.npz"),
        ("dat", "data"),
        ("other.onnx", None),
        ("x.onnx", None),
        ("dtaa/gone.npz", None),
        ("gone/test.npz", None),
        ("data", None),
        ("\0", None),
        ("a" * 5000, None),
    ],
)
def test_a_missing_path_is_answered_with_the_nearest_one_that_exists(
    missing: str, meant: str | None, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    for name in ("model.onnx", "net.onnx", "data/test.npz"):
        (tmp_path / name).touch()
    expected = "otherwise" if meant is None else f"did you mean `{tmp_path / meant}`?"
    assert near_path(tmp_path / missing, "otherwise") == expected


def test_a_relative_path_stays_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").touch()
    assert near_path("modle.onnx") == "did you mean `model.onnx`?"
    assert near_path("nothing.npz") is None
