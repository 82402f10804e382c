"""Numbers with units, rounded for reading."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.render.units import amount, counted, ms, size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0000 ms"),
        (0.0123, "0.0123 ms"),
        (0.1, "0.100 ms"),
        (0.5678, "0.568 ms"),
        (1, "1.00 ms"),
        (8.414, "8.41 ms"),
        (10, "10.0 ms"),
        (99.94, "99.9 ms"),
        (100, "100 ms"),
        (132.4, "132 ms"),
        (12345.6, "12346 ms"),
    ],
)
def test_milliseconds_have_about_three_digits(value: float, text: str) -> None:
    assert ms(value) == text


@settings(deadline=None)
@given(st.floats(0.01, 1e6))
def test_milliseconds_are_off_by_less_than_half_a_percent(value: float) -> None:
    assert float(ms(value).removesuffix(" ms")) == pytest.approx(value, rel=0.00501)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (812, "812 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (4301, "4.2 KiB"),
        (1024**2, "1.0 MiB"),
        (1_395_864_371, "1.3 GiB"),
        (1024**4, "1.0 TiB"),
        (5000 * 1024**4, "5000.0 TiB"),
    ],
)
def test_sizes_are_in_binary_units(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0 k"),
        (4321, "4.3 k"),
        (11_689_512, "11.7 M"),
        (1_814_073_344, "1.8 G"),
        (2 * 10**12, "2.0 T"),
        (5 * 10**15, "5000.0 T"),
    ],
)
def test_counts_are_in_decimal_units(count: int, text: str) -> None:
    assert amount(count) == text


FACTORS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


@settings(deadline=None)
@given(st.integers(0, 2**50))
def test_a_size_says_its_bytes_to_the_digits_it_shows(count: int) -> None:
    number, unit = size(count).split(" ")
    assert abs(float(number) * FACTORS[unit] - count) <= 0.051 * FACTORS[unit]


def test_one_thing_is_singular() -> None:
    assert [counted(n, "file") for n in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
