"""The help of a command: headings, common options first, defaults, examples, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from winml.modelkit.cli import help_groups
from winml.modelkit.cli import help_layout as layout
from winml.modelkit.core.dataclass import dataclass

_HELP_ALL = "--help-all"


@dataclass(frozen=True)
class Row:
    """A line of a section: an option, an argument or a sub-command, and whether `--help` shows it."""

    term: str
    text: str
    common: bool = True


def help_text(context: click.Context, *, everything: bool) -> str:
    """The help of a command; without `everything`, its rarely used options are only counted."""
    command, width = context.command, layout.terminal_width()
    found = sections(context)
    shown = {
        heading: [(row.term, row.text) for row in rows if row.common or everything] for heading, rows in found.items()
    }
    column = layout.column_width((term for rows in shown.values() for term, _ in rows), width)
    blocks = [
        layout.usage(context.command_path, command.collect_usage_pieces(context), width),
        layout.paragraph(command.help or "", width),
        *(layout.section(heading, rows, column, width) for heading, rows in shown.items() if rows),
    ]
    if everything:
        from winml.modelkit.cli.reference import reference_text

        blocks.append(reference_text(width))
    if command.epilog:
        blocks.append(layout.examples(command.epilog.splitlines(), width))
    hidden = sum(not row.common for rows in found.values() for row in rows)
    if hidden and not everything:
        more = f"{hidden} more {'option' if hidden == 1 else 'options'}: {context.command_path} {_HELP_ALL}"
        blocks.append(layout.paragraph(more, width, indent=""))
    return "\n".join(blocks).rstrip("\n")


def sections(context: click.Context) -> dict[str, list[Row]]:
    """Headings with their rows, in the order of the help."""
    command = context.command
    path = context.command_path.partition(" ")[2]
    found: dict[str, list[Row]] = {}
    if isinstance(command, click.Group):
        found["Commands"] = [Row(name, first_sentence(sub.help or "")) for name, sub in command.commands.items()]
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    if arguments:
        found["Arguments"] = [Row(_argument_term(a), help_groups.describe_argument(path, a)) for a in arguments]
    options = {long_name(p): p for p in command.params if isinstance(p, click.Option) and not p.hidden}
    help_rows = [
        Row("-h, --help", "Show this help and exit."),
        Row(_HELP_ALL, "Show all options, exit codes and environment variables."),
    ]
    if len(options) <= help_groups.SHOWN_WHOLE:
        every = [name for names in help_groups.arrange(path, options).values() for name, _ in names]
        rows = [Row(_option_term(options[name]), _describe(options[name], path, context)) for name in every]
        return {**found, "Options": [*rows, *help_rows]}
    for heading, names in help_groups.arrange(path, options).items():
        found[heading] = [
            Row(_option_term(options[name]), _describe(options[name], path, context), common) for name, common in names
        ]
    return {**found, "Help": help_rows}


def first_sentence(text: str) -> str:
    """Text up to its first full stop."""
    head, stop, _ = text.partition(". ")
    return head + stop.rstrip()


def long_name(option: click.Option) -> str:
    """`--model` for `-m, --model`."""
    return max(option.opts, key=len)


def _argument_term(argument: click.Argument) -> str:
    term = argument.metavar or (argument.name or "").upper()
    return term + ("..." if argument.nargs != 1 else "")


def _option_term(option: click.Option) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        return f"{names}/{option.secondary_opts[0]}"
    return names if option.is_flag or option.count else f"{names} {_metavar(option)}"


def _metavar(option: click.Option) -> str:
    if option.metavar is not None:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return f"[{'|'.join(map(str, option.type.choices))}]"
    if isinstance(option.type, click.types.IntParamType):
        return "N"
    return "X" if isinstance(option.type, click.types.FloatParamType) else long_name(option).strip("-").upper()


def _describe(option: click.Option, path: str, context: click.Context) -> str:
    """The help of an option with its range, its default and whether it is required."""
    text = (option.help or "").removesuffix(".")
    facts = [*_range(option), *_default(option, path, context)]
    if facts and "default" not in text:
        text += f" ({'; '.join(facts)})"
    return f"{text}. Required." if option.required else f"{text}."


def _range(option: click.Option) -> Iterator[str]:
    low, high = getattr(option.type, "min", None), getattr(option.type, "max", None)
    if low is not None and high is not None:
        yield f"{low:g} to {high:g}"


def _default(option: click.Option, path: str, context: click.Context) -> Iterator[str]:
    if isinstance(option.envvar, str):
        yield f"default ${option.envvar}"
    value: Any = option.get_default(context, call=False)
    stated = help_groups.find_default(path, long_name(option))
    if isinstance(value, bool):
        if option.secondary_opts:
            yield f"default {(option.opts if value else option.secondary_opts)[0]}"
    elif isinstance(value, int | float):
        yield f"default {value:g}"
    elif isinstance(value, str):
        yield f"default {value}"
    elif isinstance(value, tuple | list) and value:
        yield f"default {', '.join(value)}"
    elif stated is not None:
        yield f"default: {stated}"
