"""Provider options as the user writes them: parsed, then checked against the table of EPs.

EPs ignore options they do not know and values they cannot read, and then run with their defaults.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.suggest import did_you_mean, near_names
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog

_TRUE = {"1": "1", "true": "1", "on": "1", "yes": "1"}
MOST_JSON_BYTES = 1 << 20
_FALSE = {"0": "0", "false": "0", "off": "0", "no": "0"}


def is_whole(word: str) -> bool:
    """Whether a text is a whole number that fits 64 bits or so; Python does not read much longer ones."""
    return word.isascii() and word.isdigit() and len(word) <= 20


def parse_pairs(pairs: Iterable[str], *, option: str = "--ep-options", example: str = "soc_model=60") -> dict[str, str]:
    """`K=V` texts as a dictionary; raises for a name with two values."""
    parsed: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or not key or not value:
            raise RequestError(
                f"{option} must be written K=V but got `{pair}`", hint=f"for example `{option} {example}`"
            )
        if key in parsed and parsed[key] != value:
            raise RequestError(f"{option} gives `{key}` twice: `{parsed[key]}` and `{value}`")
        parsed[key] = value
    return parsed


def _whole(name: str, option: catalog.Option, value: str) -> str:
    if not is_whole(value):
        raise RequestError(f"provider option `{name}` must be a whole number but got `{value[:40]}`")
    number = int(value)
    if option.low is not None and number < option.low:
        raise RequestError(f"provider option `{name}` must be at least {option.low} but got {number}")
    if option.high is not None and number > option.high:
        raise RequestError(f"provider option `{name}` must be at most {option.high} but got {number}")
    if option.choices and str(number) not in option.choices:
        raise RequestError(f"provider option `{name}` cannot be {number}", hint=f"known: {', '.join(option.choices)}")
    return str(number)


def _choice(name: str, option: catalog.Option, value: str) -> str:
    folded = {c.casefold(): c for c in option.choices}
    if value.casefold() not in folded:
        raise RequestError(f"provider option `{name}` cannot be `{value}`", hint=did_you_mean(value, option.choices))
    return folded[value.casefold()]


def _bool(name: str, value: str) -> str:
    known = _TRUE | _FALSE
    if value.casefold() not in known:
        raise RequestError(f"provider option `{name}` must be 0 or 1 but got `{value}`")
    return known[value.casefold()]


def _json(name: str, value: str) -> str:
    """JSON text, or the content of the file that is named; the text is what is passed on."""
    text = value
    if not value.lstrip().startswith("{"):
        path = Path(value)
        try:
            if path.stat().st_size > MOST_JSON_BYTES:
                raise RequestError(f"`{value}` is too large for the provider option `{name}`")
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise RequestError(
                f"provider option `{name}` must be a JSON object or a file that holds one: {error}",
                hint=f"for example `--ep-options '{name}={catalog.JSON_EXAMPLES[name]}'`",
            ) from error
    try:
        found = parse_json(text)
    except ValueError as error:
        raise RequestError(f"provider option `{name}` is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise RequestError(f"provider option `{name}` must be a JSON object but got `{text[:40]}`")
    return json.dumps(found, separators=(",", ":"))


def _check(name: str, option: catalog.Option, value: str) -> str:
    if option.refused:
        raise RequestError(f"provider option `{name}` cannot be set: {option.refused}")
    if option.type == "int":
        return _whole(name, option, value)
    if option.type == "ints":
        return ",".join(_whole(name, option, part.strip()) for part in value.split(","))
    if option.type == "bool":
        return _bool(name, value)
    if option.type == "choice":
        return _choice(name, option, value)
    if option.type == "json":
        return _json(name, value)
    if option.type == "path" and (name != "backend_path" or "/" in value or "\\" in value):
        # The worker that opens the session runs in a folder of its own; a bare library name is looked up by the EP.
        return str(Path(value).absolute())
    return value


def _unknown_option_hint(name: str, info: catalog.EPInfo) -> str:
    """The nearest names, and where all of them are: forty names in an error hide what it says."""
    near = near_names(name, info.options)
    return f"{near + ' ' if near else ''}`winml ep options {info.name}` lists all {len(info.options)}"


def check_options(target: Target, given: Mapping[str, str]) -> dict[str, str]:
    """The options for `target` in the EP's own spelling, or an error for the first that does not fit."""
    info = catalog.BY_NAME[target.ep]
    fixed = info.device_options.get(target.device, {})
    result: dict[str, str] = {}
    for name, value in given.items():
        option = info.options.get(name)
        if option is None:
            hint = _unknown_option_hint(name, info) if info.options else f"`{info.name}` takes no provider options"
            raise RequestError(f"execution provider `{info.name}` has no option `{name}`", hint=hint)
        result[name] = _check(name, option, value)
        if name in fixed and result[name].split(".")[0] != fixed[name]:
            raise RequestError(
                f"provider option `{name}={value}` contradicts the target `{target}`",
                hint="name the device in the target instead",
            )
    if "backend_path" in result and "backend_type" in result:
        raise RequestError("provider options `backend_path` and `backend_type` cannot be combined")
    return result


def with_threads(target: Target, given: Mapping[str, str], threads: int | None) -> dict[str, str]:
    """The options with the number of threads added, for an EP that has threads of its own."""
    option = catalog.BY_NAME[target.ep].threads_option
    if threads is None or option is None or target.device != "cpu":
        return dict(given)
    return {option: str(threads), **given}


def complete(target: Target, given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """All options to open a session with, and those among them that were added by default."""
    info = catalog.BY_NAME[target.ep]
    asked = check_options(target, given)
    added = dict(info.device_options.get(target.device, {}))
    if "backend_path" in asked:
        added.pop("backend_type", None)
    if target.simulated and "htp_arch" not in asked:
        added |= info.simulator_options
    added = {k: v for k, v in added.items() if k not in asked}
    return {**added, **asked}, added


def for_session(target: Target, given: Mapping[str, str]) -> dict[str, str]:
    """Options without those that choose several devices: a compiler takes them, a session does not."""
    chosen = catalog.BY_NAME[target.ep].device_choosing
    return {name: value for name, value in given.items() if name not in chosen or "," not in value}


def device_choice(target: Target, given: Mapping[str, str]) -> dict[str, str]:
    """Those among options for a compiler that say which one device a result is for."""
    chosen = catalog.BY_NAME[target.ep].device_choosing
    return {name: value for name, value in for_session(target, given).items() if name in chosen}
