"""Parsers of option values: `NAME=N`, `INPUT=LOW:HIGH`, `10G`, `30d`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.suggest import near_path
from winml.modelkit.ep.options import is_whole, parse_pairs
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.graph.sizes import merge_sizes


def sizes(given: dict[str, Any]) -> dict[str, int]:
    """Sizes of dynamic dimensions by name or position, from `--dim` and `--shape`."""
    return merge_sizes(dimensions(given["dims"]), shapes(given.get("shapes", ())))


def dimensions(raw_values: Iterable[str]) -> dict[str, int]:
    """`NAME=N` values; N is at least 1."""
    parsed = {}
    for name, value in parse_pairs(raw_values, option="--dim", example="batch=4").items():
        if not is_whole(value) or int(value) < 1:
            raise RequestError(f"dimension `{name}` must be at least 1 but got `{value[:40]}`")
        parsed[name] = int(value)
    return parsed


def shapes(raw_values: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """`NAME=N[,N…]` values: the size of an axis, or the shape of an input."""
    parsed = {}
    for name, value in parse_pairs(raw_values, option="--shape", example="sequence=64").items():
        sizes = value.split(",")
        if not all(is_whole(size) and int(size) >= 1 for size in sizes):
            raise RequestError(
                f"--shape `{name}` must be sizes from 1 but got `{value[:40]}`", hint="for example `--shape ids=2,64`"
            )
        parsed[name] = tuple(map(int, sizes))
    return parsed


def axis_names(raw: str | None) -> tuple[str, ...] | None:
    """`batch,sequence`, or `none` for no axis; None when it was not given."""
    if raw is None:
        return None
    return () if raw.strip() == "none" else tuple(name.strip() for name in raw.split(",") if name.strip())


def input_specs(path: str | None) -> dict[str, Any]:
    """The JSON object in a file of input specs."""
    if path is None:
        return {}
    try:
        value = read_json(Path(path))
    except FileNotFoundError as error:
        raise RequestError(f"input specs not found: `{path}`", hint=near_path(path)) from error
    except (OSError, ValueError) as error:
        raise RequestError(f"`{path}` is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise RequestError(
            f"`{path}` must map inputs to their specs", hint='for example {"input_ids": {"shape": ["batch", 32]}}'
        )
    return value


def _bounds(raw: str, text: str) -> tuple[int, int]:
    low, colon, high = text.partition(":")
    try:
        bounds = int(low), int(high)
    except ValueError:
        colon = ""
    if not colon:
        raise RequestError(
            f"--int-range must be written [INPUT=]LOW:HIGH but got `{raw}`",
            hint="for example `--int-range ids=0:100`",
        )
    if bounds[0] > bounds[1]:
        raise RequestError(f"--int-range `{raw}` is empty: {bounds[0]} is above {bounds[1]}")
    return bounds


def int_ranges(raw_values: Iterable[str]) -> dict[str, tuple[int, int]]:
    """`[INPUT=]LOW:HIGH` values; without an input the range is for all integer inputs."""
    parsed: dict[str, tuple[int, int]] = {}
    for raw in raw_values:
        name, equals, text = raw.rpartition("=")
        if equals and not name:
            raise RequestError(f"--int-range `{raw}` names no input")
        bounds = _bounds(raw, text)
        if parsed.setdefault(name, bounds) != bounds:
            raise RequestError(f"--int-range gives {f'`{name}`' if name else 'all inputs'} two ranges")
    return parsed


def _parse_scaled(raw: str, units: dict[str, float], option: str, example: str) -> float:
    number, unit = raw.strip()[:-1], raw.strip()[-1:].lower()
    if unit.isdigit():
        number, unit = raw.strip(), ""
    try:
        value = float(number) * units[unit]
    except (ValueError, KeyError):
        value = float("nan")
    if not 0 <= value < float("inf"):
        raise RequestError(f"{option} cannot be `{raw}`", hint=f"for example `{example}`")
    return value


def size_bytes(raw: str) -> int:
    """`500M`, `10G` or a number of bytes."""
    units = {"": 1.0, "b": 1.0, "k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40}
    return int(_parse_scaled(raw, units, "a size", "10G"))


def age_s(raw: str) -> float:
    """`90s`, `12h`, `30d` or a number of seconds."""
    return _parse_scaled(raw, {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}, "an age", "30d")


def duration_s(raw: str) -> float:
    """`90s`, `10m`, `2h` or a number of seconds."""
    found = _parse_scaled(raw, {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}, "a budget", "10m")
    if found <= 0:
        raise RequestError(f"a budget must be greater than 0 but got `{raw}`")
    return found


def gain_pct(raw: str) -> float:
    """Share of the time that is saved, in percent, from `30%` or `1.5x`."""
    text = raw.strip().lower()
    try:
        value = 100 * (1 - 1 / float(text[:-1])) if text.endswith("x") else float(text.removesuffix("%"))
    except (ValueError, ZeroDivisionError):
        value = float("nan")
    if not 0 < value < 100:
        raise RequestError(f"a gain cannot be `{raw}`", hint="for example `30%`, or `1.5x`")
    return value


def lengths_of(raw: str) -> tuple[int, ...]:
    """Lengths of prompts: `32` or `32,256`."""
    words = [word.strip() for word in raw.split(",") if word.strip()]
    if not words or not all(word.isascii() and word.isdigit() and 0 < int(word) < 2**31 for word in words):
        raise RequestError(f"lengths of prompts cannot be `{raw}`", hint="for example `--prompt-tokens 32,256`")
    return tuple(map(int, words))


def input_settings(given: dict[str, Any]) -> InputSettings:
    """How to make inputs, from the options."""
    dims, ranges = sizes(given), int_ranges(given["int_ranges"])
    npz = given["input_data"]
    if npz is not None and (dims or ranges or given["batch_size"]):
        raise RequestError("`--input-data` cannot be combined with `--dim`, `--shape`, `--batch-size` or `--int-range`")
    return InputSettings(
        npz=None if npz is None else Path(npz).absolute(),
        dims=dims,
        batch_size=given["batch_size"],
        int_ranges=ranges,
        seed=given["seed"],
    )
