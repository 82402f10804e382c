"""Reference pages that are tables of the program: exit codes, environment, knobs, precisions, targets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import md_text as md

from winml.modelkit.building.optimize import table as passes
from winml.modelkit.cli.reference import ENVIRONMENT, EXIT_CODES
from winml.modelkit.core.errors import BY_CODE
from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog, precision
from winml.modelkit.search import knob_table


def exit_codes_page() -> str:
    rows = []
    for number, meaning in EXIT_CODES.items():
        words = [f"`{code}`" for code, error in BY_CODE.items() if error.exit_code == number]
        rows.append((f'<a id="exit-{number}"></a>{number}', md.escape(meaning), ", ".join(words)))
    classes = [
        (f"`{code}`", f"`{error.__name__}`", str(error.exit_code), md.escape(_first_line(error.__doc__)))
        for code, error in BY_CODE.items()
    ]
    return md.page(
        "# Exit codes",
        "Every command ends with one of these. With `--json`, a failure is an object with `error.code`,"
        " `error.message`, `error.hint` and `error.exit`.",
        md.table(("exit", "meaning", "`error.code`"), rows),
        'A script can tell "the check failed" (5) from "the check could not be made" (1, 3). What counts as what is in'
        " [the contract](../contract.md#exit-codes).",
        "## Errors in Python",
        "The same errors are classes of [`wk.errors`](api.md#errors); all of them are a `wk.ModelkitError`.",
        md.table(("`code`", "class", "`exit_code`", "meaning"), classes),
    )


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def environment_page() -> str:
    rows = [(f'<a id="{name}"></a>`{name}`', md.escape(meaning)) for name, meaning in ENVIRONMENT.items()]
    return md.page(
        "# Environment variables",
        "None of them has to be set. Options of a command come before variables.",
        md.table(("variable", "meaning"), rows),
    )


def precisions_page() -> str:
    rows = []
    for name, row in precision.PRECISIONS.items():
        rows.append(
            (
                f'<a id="{name}"></a>`{name}`',
                md.escape(row.meaning),
                "yes" if row.needs_data else "no",
                f"{row.agreement:g}",
                ", ".join(f"`{one}`" for one in row.then),
            )
        )
    auto = [
        (
            f"`{Target(info.name, device)}`",
            f"`{precision.resolve(Target(info.name, device), precision.AUTO)}`",
            _int8(info),
        )
        for info in catalog.TABLE
        for device in info.devices
    ]
    return md.page(
        "# Precisions",
        "What `-p` and `--precision` of [`winml build`](commands/build.md) and"
        " [`winml quantize`](commands/quantize.md) take, and `precision=` in Python. How each is made is in"
        " [Quantizing a model](../quantize.md).",
        md.table(("precision", "meaning", "needs data", "least agreement", "then"), rows),
        "*Needs data*: it is calibrated on samples (`--calibration`). *Least agreement*: the cosine with the outputs of"
        " the source that an artifact must reach on its target; `fp32` on an NPU or a GPU, which may compute in 16"
        f" bits, is held to that of `fp16` ({precision.PRECISIONS['fp16'].agreement:g}). *Then*: what"
        " `--fallback-precision` tries next, as far as the target can use it.",
        "## By target",
        "`-p auto` is the default. `int8` is made in the types the provider is fastest with.",
        md.table(("target", "`auto` is", "`int8` is"), auto),
    )


def _int8(info: catalog.EPInfo) -> str:
    types = info.int8
    channels = "per channel where that is nearer" if types.per_channel else "per tensor"
    return f"{types.activation_type} activations, {types.weight_type} weights, {channels}"


def knobs_page() -> str:
    targets = [Target(info.name, device) for info in catalog.TABLE for device in info.devices]
    by_target = {target: knob_table.knobs((target,)) for target in targets}
    names = dict.fromkeys(knob.name for knobs in by_target.values() for knob in knobs)
    single = [name for name in names if name.removeprefix("optimize.") in passes.BY_NAME]
    blocks = []
    for name in names:
        if name in single:
            continue
        where = {target: knob for target, knobs in by_target.items() for knob in knobs if knob.name == name}
        blocks.append(_describe_knob(name, where, targets))
    more = [
        (f'<a id="{name}"></a>`{name}`', md.escape(passes.BY_NAME[name.removeprefix("optimize.")].what))
        for name in single
    ]
    return md.page(
        "# Knobs of a search",
        "What [`winml autoconfig`](commands/autoconfig.md) may choose. Every knob also has the level `default`, which"
        " leaves the config as it is; levels that cannot apply to a graph or a target are skipped, with the reason. A"
        " file for `--space` ([`winml/space/1`](json/space.md)) restricts a search to some knobs and levels:",
        md.fence("json", '{"schema": "winml/space/1", "knobs": {"quantize.scheme": ["int8", "fp16"]}}'),
        "\n".join(blocks),
        "With several targets the target is a knob, too: `target`, with a level for each.",
        "## Passes one by one",
        "A knob for every pass above `basic`, with the level `on`, which adds it to `optimize.passes`. How a pass works"
        " is in [Optimizing](../optimize.md).",
        md.table(("knob", "what the pass does"), more),
    )


def _describe_knob(name: str, where: Mapping[Target, Knob], targets: Sequence[Target]) -> str:
    levels = dict.fromkeys(level.name for knob in where.values() for level in knob.levels)
    keys = dict.fromkeys(key for knob in where.values() for level in knob.levels for key in _written(level))
    when = dict.fromkeys(
        f"`{key}` is {' or '.join(f'`{_word(value)}`' for value in values)}"
        for knob in where.values()
        for key, values in knob.when.items()
        if key not in ("target", name)
    )
    text = f"Levels {', '.join(f'`{level}`' for level in levels)}."
    if list(keys) != [name]:
        text += f" Writes {', '.join(f'`{key}`' for key in keys)}."
    if when:
        text += f" Has an effect when {' and '.join(when)}."
    return md.definition(name, f"{text} Targets: {_target_words(where, targets)}.", name)


def _target_words(some: Collection[Target], every: Sequence[Target]) -> str:
    """Which targets of all, in the shorter way."""
    others = [target for target in every if target not in some]
    if not others:
        return "all"
    shown = ", ".join(f"`{target}`" for target in (some if len(some) <= len(others) else others))
    return shown if len(some) <= len(others) else f"all but {shown}"


def _word(value: Any) -> str:
    return {None: "null", True: "true", False: "false"}.get(value, str(value))


def _written(level: Level) -> Iterable[str]:
    return (*level.sets, *level.adds)


def targets_page() -> str:
    rows = []
    for info in catalog.TABLE:
        rows.append(
            (
                f"[`{info.name}`](#{info.name})",
                ", ".join(f"`{Target(info.name, device)}`" for device in info.devices),
                ", ".join(info.vendors) or "any",
                "yes" if info.can_compile else "no",
                _simulated(info) or "no",
            )
        )
    order = [
        (f"`{device}`", ", ".join(f"`{name}`" for name in catalog.DEVICE_EPS[device]))
        for device in catalog.AUTO_DEVICES
    ]
    return md.page(
        "# Execution providers and targets",
        "A target is an execution provider (EP) and a device, written `EP/DEVICE`: `qnn/npu`, `openvino/cpu`. The EP"
        " alone means the first of its devices. `--target auto`, the default, is the first of"
        f" {', '.join(f'`{one}`' for one in catalog.AUTO_DEVICES)} among the real devices of this machine."
        " [`winml sys`](commands/sys.md) shows which targets are ready.",
        md.table(("EP", "targets", "hardware of", "compiles", "simulated"), rows),
        "For `--device` the EP is chosen in this order:",
        md.table(("device", "EPs, best first"), order),
        *(block for info in catalog.TABLE for block in _ep_blocks(info)),
    )


def _simulated(info: catalog.EPInfo) -> str:
    places = [f"{device} on {system} {machine}" for device, on in info.simulated_on.items() for system, machine in on]
    return ", ".join(places)


def _ep_blocks(info: catalog.EPInfo) -> Iterable[str]:
    yield f"## {info.name}"
    aliases = f", also called {', '.join(f'`{name}`' for name in info.aliases)}" if info.aliases else ""
    yield f"`{info.full_name}`{aliases}."
    yield md.table(
        ("installed by", "kind", "systems"),
        [
            (
                f"`{package.distribution}`" + (f" (`winml-modelkit[{package.extra}]`)" if package.extra else ""),
                package.kind,
                ", ".join((*package.systems, *package.machines)),
            )
            for package in info.packages
        ],
    )
    facts = [f"{device}: {reason}" for device, reason in info.unquantized.items()]
    if facts:
        yield "Not for quantized models: " + "; ".join(md.escape(fact) for fact in facts) + "."
    if info.native_quantization:
        yield "It quantizes by itself, so a build hands it an unquantized model."
    if info.options:
        yield (
            "Options for `--ep-options NAME=VALUE`; a config file may set those marked *config*, others only the"
            " command line ([why](../security.md))."
        )
        yield md.table(("option", "values", "set by"), [_option_row(name, one) for name, one in info.options.items()])


def _option_row(name: str, option: catalog.Option) -> tuple[str, str, str]:
    values: str = option.type
    if option.choices:
        values = ", ".join(f"`{choice}`" for choice in option.choices)
    elif option.low is not None:
        values = (
            f"{option.type}, {option.low} to {option.high}"
            if option.high is not None
            else f"{option.type}, at least {option.low}"
        )
    if option.refused is not None:
        return f"`{name}`", values, f"refused: {md.escape(option.refused)}"
    return f"`{name}`", values, "config, command line" if option.trust == "document" else "command line"
