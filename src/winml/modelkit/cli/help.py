"""Commands whose help has headings, common options first, states defaults and is as wide as the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from winml.modelkit.cli import help_groups
from winml.modelkit.cli import help_layout as layout

_HELP_ALL = "--help-all"


def _show_all(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(help_text(context, everything=True))
        context.exit()


_help_all_option = click.Option(
    [_HELP_ALL], is_flag=True, is_eager=True, expose_value=False, callback=_show_all, help="Show all options."
)


class _Helped(click.Command):
    """What commands and groups share."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), _help_all_option]

    def get_help(self, ctx: click.Context) -> str:
        return help_text(ctx, everything=False)


class Command(_Helped):
    """A command of winml."""


class Group(_Helped, click.Group):
    """A command with sub-commands."""

    command_class = Command
    group_class = type

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            raise click.UsageError(f"`{ctx.command_path}` needs one of: {', '.join(self.list_commands(ctx))}", ctx)
        return super().parse_args(ctx, args)


def help_text(context: click.Context, *, everything: bool) -> str:
    """The help of a command; without `everything`, its rarely used options are only counted."""
    command, width = context.command, layout.terminal_width()
    path = context.command_path.partition(" ")[2]
    sections = _sections(context, path)
    shown = [
        (heading, [(term, text) for term, text, common in rows if common or everything]) for heading, rows in sections
    ]
    hidden = sum(not common for _, rows in sections for *_, common in rows)
    column = layout.column_width((term for _, rows in shown for term, _ in rows), width)
    blocks = [
        layout.usage(context.command_path, command.collect_usage_pieces(context), width),
        layout.paragraph(command.help or "", width),
        *(layout.section(heading, rows, column, width) for heading, rows in shown if rows),
    ]
    if everything:
        from winml.modelkit.cli.reference import reference_text

        blocks.append(reference_text(width))
    if command.epilog:
        blocks.append(layout.examples(command.epilog.splitlines(), width))
    if hidden and not everything:
        more = f"{hidden} more {'option' if hidden == 1 else 'options'}: {context.command_path} {_HELP_ALL}"
        blocks.append(layout.paragraph(more, width, indent=""))
    return "\n".join(blocks).rstrip("\n")


def _sections(context: click.Context, path: str) -> list[tuple[str, list[tuple[str, str, bool]]]]:
    """Headings with their rows: term, description, and whether the row is always shown."""
    command = context.command
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    whole = len(options) <= help_groups.SHOWN_WHOLE
    by_heading: dict[str, list[tuple[tuple[bool, int], str, str, bool]]] = {}
    for option in options:
        entry = help_groups.find_entry(path, long_name(option)) or help_groups.Entry(help_groups.OTHER, 0, True)
        order, shown = (not entry.common, entry.rank), entry.common or whole
        row = (order, _term(option, context), _describe(option, context), shown)
        by_heading.setdefault(entry.heading, []).append(row)
    ordered = [
        (heading, [row[1:] for row in sorted(by_heading[heading], key=lambda row: row[0])])
        for heading in help_groups.heading_order(path)
        if heading in by_heading
    ]
    helps = [
        ("-h, --help", "Show this help and exit.", True),
        (_HELP_ALL, "Show all options, exit codes and environment variables.", True),
    ]
    if whole:
        ordered = [("Options", [*(row for _, rows in ordered for row in rows), *helps])]
    else:
        ordered.append(("Help", helps))
    arguments = [
        (p.make_metavar(context), help_groups.describe_argument(path, p) or "", True)
        for p in command.params
        if isinstance(p, click.Argument)
    ]
    commands = [(name, text, True) for name, text in _subcommands(context)]
    before = (("Commands", commands), ("Arguments", arguments))
    return [*((heading, rows) for heading, rows in before if rows), *ordered]


def _subcommands(context: click.Context) -> Iterator[tuple[str, str]]:
    command = context.command
    if isinstance(command, click.Group):
        for name in command.commands:
            yield name, first_sentence(command.commands[name].help or "")


def first_sentence(text: str) -> str:
    """Text up to its first full stop."""
    head, stop, _ = text.partition(". ")
    return head + stop.rstrip()


def long_name(option: click.Option) -> str:
    """`--model` for `-m, --model`."""
    return max(option.opts, key=len)


def _term(option: click.Option, context: click.Context) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        return f"{names}/{option.secondary_opts[0]}"
    return names if option.is_flag or option.count else f"{names} {_metavar(option, context)}"


def _metavar(option: click.Option, context: click.Context) -> str:
    if option.metavar is not None or isinstance(option.type, click.Choice):
        return option.make_metavar(context)
    if isinstance(option.type, click.types.IntParamType):
        return "N"
    return "X" if isinstance(option.type, click.types.FloatParamType) else long_name(option).strip("-").upper()


def _describe(option: click.Option, context: click.Context) -> str:
    """The help of an option with its range, its default and whether it is required."""
    text = (option.help or "").removesuffix(".")
    found = [*_range(option), *_default(option, context)]
    text += f" ({'; '.join(found)})." if found and "(default" not in text else "."
    return f"{text} Required." if option.required else text


def _range(option: click.Option) -> Iterator[str]:
    low, high = getattr(option.type, "min", None), getattr(option.type, "max", None)
    if low is not None and high is not None:
        yield f"{low:g} to {high:g}"


def _default(option: click.Option, context: click.Context) -> Iterator[str]:
    if isinstance(option.envvar, str):
        yield f"default ${option.envvar}"
    value: Any = option.get_default(context, call=False)
    if isinstance(value, bool):
        if option.secondary_opts:
            yield f"default {(option.opts if value else option.secondary_opts)[0]}"
    elif isinstance(value, int | float):
        yield f"default {value:g}"
    elif isinstance(value, str):
        yield f"default {value}"
    elif isinstance(value, tuple) and value:
        yield f"default {', '.join(value)}"
