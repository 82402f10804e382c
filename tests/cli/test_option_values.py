"""The small languages of `--dim`, `--int-range`, sizes and ages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.cli.option_values import age_s, dimensions, duration_s, gain_pct, int_ranges, size_bytes
from winml.modelkit.core.errors import RequestError

WORDS = st.lists(st.one_of(st.text(max_size=20), st.text("ab=:-+_0129 ", max_size=12)), max_size=4)
NAMES = st.text(min_size=1, max_size=15).filter(lambda name: name == name.strip() and "=" not in name)

# --dim


def test_dimensions_are_whole_numbers_by_name() -> None:
    assert dimensions(["batch=1", "sequence=128"]) == {"batch": 1, "sequence": 128}


def test_no_words_are_no_dimensions() -> None:
    assert dimensions([]) == {}


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "1e3", "+4", "1_0", "１", "²"])
def test_a_dimension_that_is_not_at_least_1_is_refused(value: str) -> None:
    with pytest.raises(RequestError) as caught:
        dimensions([f"batch={value}"])
    assert caught.value.message == f"dimension `batch` must be at least 1 but got `{value}`"


@pytest.mark.parametrize("word", ["batch", "batch=", "=1", "", "="])
def test_a_malformed_dimension_is_shown_as_it_was_written(word: str) -> None:
    with pytest.raises(RequestError) as caught:
        dimensions([word])
    assert caught.value.message == f"--dim must be written K=V but got `{word}`"


def test_a_malformed_dimension_comes_with_an_example_of_a_dimension() -> None:
    with pytest.raises(RequestError) as caught:
        dimensions(["batch"])
    assert "soc_model" not in (caught.value.hint or "")


def test_a_dimension_given_two_values_is_a_wrong_request() -> None:
    with pytest.raises(RequestError, match="^--dim gives `batch` twice: `1` and `8`$"):
        dimensions(["batch=1", "batch=8"])


def test_a_dimension_too_long_for_python_is_a_wrong_request() -> None:
    with pytest.raises(RequestError):
        dimensions(["batch=" + "9" * 5000])


@settings(deadline=None)
@given(st.dictionaries(NAMES, st.integers(1, 2**63), max_size=4))
def test_any_dimensions_come_back_from_their_words(expected: dict[str, int]) -> None:
    assert dimensions(f"{name}={value}" for name, value in expected.items()) == expected


@settings(deadline=None)
@given(WORDS)
def test_any_words_are_dimensions_or_a_wrong_request(words: list[str]) -> None:
    try:
        parsed = dimensions(words)
    except RequestError:
        return
    assert all(name and value >= 1 for name, value in parsed.items())


# --int-range


def test_a_range_is_for_one_input_or_for_all() -> None:
    assert int_ranges(["ids=0:30521", "0:1"]) == {"ids": (0, 30521), "": (0, 1)}


def test_no_words_are_no_ranges() -> None:
    assert int_ranges([]) == {}


def test_both_ends_may_be_negative_or_the_same() -> None:
    assert int_ranges(["a=-5:-1", "b=-5:5", "c=7:7"]) == {"a": (-5, -1), "b": (-5, 5), "c": (7, 7)}


def test_the_name_of_an_input_may_hold_colons_and_equals_signs() -> None:
    assert int_ranges(["serving:0=1:2", "a=b=3:4"]) == {"serving:0": (1, 2), "a=b": (3, 4)}


@pytest.mark.parametrize(
    "word", ["", "5", ":", "1:", ":1", "a:b", "ids=", "ids=5", "ids=1.5:2", "ids=1:2:3", "0:1=ids"]
)
def test_a_malformed_range_is_shown_with_an_example(word: str) -> None:
    with pytest.raises(RequestError) as caught:
        int_ranges([word])
    assert caught.value.message == f"--int-range must be written [INPUT=]LOW:HIGH but got `{word}`"
    assert caught.value.hint == "for example `--int-range ids=0:100`"


def test_a_range_without_values_is_refused() -> None:
    with pytest.raises(RequestError, match="^--int-range `ids=5:1` is empty: 5 is above 1$"):
        int_ranges(["ids=5:1"])


def test_an_equals_sign_without_an_input_is_refused() -> None:
    with pytest.raises(RequestError, match="^--int-range `=0:1` names no input$"):
        int_ranges(["=0:1"])


def test_bounds_too_long_for_python_are_a_wrong_request() -> None:
    with pytest.raises(RequestError):
        int_ranges(["0:" + "9" * 5000])


@pytest.mark.parametrize("words", [["ids=0:1", "ids=0:100"], ["0:1", "0:100"]])
def test_an_input_given_two_ranges_is_a_wrong_request(words: list[str]) -> None:
    with pytest.raises(RequestError):
        int_ranges(words)


BOUNDS = st.tuples(st.integers(), st.integers()).map(lambda pair: (min(pair), max(pair)))


@settings(deadline=None)
@given(st.dictionaries(NAMES, BOUNDS, max_size=4))
def test_any_ranges_come_back_from_their_words(expected: dict[str, tuple[int, int]]) -> None:
    assert int_ranges(f"{name}={low}:{high}" for name, (low, high) in expected.items()) == expected


@settings(deadline=None)
@given(WORDS)
def test_any_words_are_ranges_or_a_wrong_request(words: list[str]) -> None:
    try:
        parsed = int_ranges(words)
    except RequestError:
        return
    assert all(low <= high for low, high in parsed.values())


# Sizes and ages


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("0", 0),
        ("1024", 1024),
        ("12b", 12),
        ("1k", 2**10),
        ("500M", 500 * 2**20),
        ("10G", 10 * 2**30),
        ("10g", 10 * 2**30),
        ("1.5T", 3 * 2**39),
        (" 10 G ", 10 * 2**30),
    ],
)
def test_a_size_is_bytes_or_a_binary_unit(word: str, count: int) -> None:
    assert size_bytes(word) == count


@pytest.mark.parametrize(
    ("word", "seconds"),
    [("0", 0), ("45", 45), ("90s", 90), ("5m", 300), ("12h", 43_200), ("30D", 2_592_000), ("1.5h", 5400)],
)
def test_an_age_is_seconds_or_a_unit_of_time(word: str, seconds: float) -> None:
    assert age_s(word) == seconds


@pytest.mark.parametrize(
    "word", ["", " ", "G", "-1", "-1G", "10X", "10GB", "nan", "inf", "1e999", "9" * 5000, "ten", "²"]
)
def test_what_is_no_size_is_refused_with_an_example(word: str) -> None:
    with pytest.raises(RequestError) as caught:
        size_bytes(word)
    assert caught.value.message == f"a size cannot be `{word}`"
    assert caught.value.hint == "for example `10G`"


@pytest.mark.parametrize("word", ["", "d", "-1d", "30y", "nan", "1d12h", "²"])
def test_what_is_no_age_is_refused_with_an_example(word: str) -> None:
    with pytest.raises(RequestError) as caught:
        age_s(word)
    assert caught.value.message == f"an age cannot be `{word}`"
    assert caught.value.hint == "for example `30d`"


@settings(deadline=None)
@given(st.one_of(st.text(max_size=20), st.text("0123456789.-+_ekmgtbsdh ", max_size=12)))
def test_any_word_is_a_size_and_an_age_or_a_wrong_request(word: str) -> None:
    for parse in (size_bytes, age_s):
        try:
            value = parse(word)
        except RequestError:
            continue
        assert 0 <= value < float("inf")


# --budget, --stop-at


@pytest.mark.parametrize(("word", "seconds"), [("90s", 90.0), ("10m", 600.0), ("2h", 7200.0), ("45", 45.0)])
def test_budgets_are_times(word: str, seconds: float) -> None:
    assert duration_s(word) == seconds


@pytest.mark.parametrize("word", ["soon", "0", "0s", "-5m", "", "10d"])
def test_a_budget_that_is_none_is_refused(word: str) -> None:
    with pytest.raises(RequestError, match="a budget"):
        duration_s(word)


@pytest.mark.parametrize(("word", "percent"), [("30%", 30.0), ("30", 30.0), ("2x", 50.0), ("1.25X", 20.0)])
def test_gains_are_shares_or_factors(word: str, percent: float) -> None:
    assert gain_pct(word) == pytest.approx(percent)


@pytest.mark.parametrize("word", ["", "x", "0x", "0.5x", "100%", "-3%", "much"])
def test_a_gain_that_is_none_is_refused(word: str) -> None:
    with pytest.raises(RequestError, match="a gain cannot be"):
        gain_pct(word)
