"""Reference pages of the commands, from the click commands and the tables that their help is made from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module

import click
import md_text as md

from winml.modelkit.cli import main
from winml.modelkit.cli.help_page import Row, first_sentence, sections
from winml.modelkit.cli.reference import EXIT_CODES

IN_DEPTH: dict[str, tuple[str, ...]] = {
    "analyze": ("analyze",),
    "autoconfig": ("autoconfig", "knowledge"),
    "build": ("building",),
    "cache": ("building",),
    "catalog": ("catalog",),
    "compare": ("measuring",),
    "compile": ("compile",),
    "completion": ("first-hour",),
    "config": ("building",),
    "dashboard": ("dashboard",),
    "debug": ("accuracy",),
    "ep": ("windows",),
    "eval": ("evaluate",),
    "export": ("export",),
    "feed": ("feeds",),
    "init": ("first-hour",),
    "inspect": ("export",),
    "kb": ("knowledge",),
    "matrix": ("matrix", "cluster"),
    "node": ("cluster",),
    "optimize": ("optimize",),
    "package": ("package", "feeds"),
    "perf": ("measuring", "tracing"),
    "quantize": ("quantize",),
    "report": ("report",),
    "run": ("run-and-serve",),
    "serve": ("run-and-serve",),
    "skill": ("model-support",),
    "support": ("model-support",),
    "sys": ("windows",),
    "trace": ("tracing",),
}
"""Command -> pages of `docs/` that say more about it."""


@cache
def commands() -> dict[str, click.Command]:
    """Every command, group and sub-command by the words behind `winml`, in the order of the program's table."""

    def below(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield path, command
        if isinstance(command, click.Group):
            for name, inner in command.commands.items():
                yield from below(f"{path} {name}", inner)

    return {
        path: command
        for name, (module, _) in main.COMMANDS.items()
        for path, command in below(name, import_module(module).command)
    }


def page_of(path: str) -> str:
    """The file of a command, seen from `reference/`."""
    return f"commands/{path.split()[0]}.md"


def option_anchor(path: str, option: str) -> str:
    """Where an option stands on the page of its command: `--target` of `feed push` is `push--target`."""
    return "-".join(path.split()[1:]) + option


def make_pages(links: dict[str, list[str]]) -> dict[str, str]:
    """The page of every command by its name; `links` are further lines for the head of each."""
    return {name: _make_page(name, links.get(name, [])) for name in main.COMMANDS}


def _make_page(name: str, links: list[str]) -> str:
    paths = [path for path in commands() if path.split()[0] == name]
    blocks = [f"# winml {name}"]
    for path in paths:
        if path != name:
            blocks.append(f"## winml {path}")
        blocks += _command_blocks(path, links if path == name else [])
    return md.page(*blocks)


def _command_blocks(path: str, links: list[str]) -> Iterator[str]:
    command = commands()[path]
    context = click.Context(command, info_name=f"winml {path}")
    level = "##" if " " not in path else "###"
    yield md.escape(command.help or "")
    yield md.fence("text", " ".join((f"winml {path}", *command.collect_usage_pieces(context))))
    if links:
        yield "\n".join(f"- {line}" for line in links)
    if command.epilog:
        yield f"{level} Examples {{ #{_anchor(path, 'examples')} }}"
        yield md.fence("sh", command.epilog)
    for heading, rows in sections(context).items():
        if heading == "Help":
            continue  # the same on every page: `winml --help` says it once
        shown = [row for row in rows if not row.term.endswith(("--help", "--help-all"))]
        if not shown:
            continue
        yield f"{level} {heading} {{ #{_anchor(path, heading)} }}"
        if heading == "Commands":
            yield _command_list(path, shown)
        else:
            yield "\n".join(_definition(path, row) for row in shown)


def _anchor(path: str, heading: str) -> str:
    return md.slug(" ".join((*path.split()[1:], heading)))


def _command_list(path: str, rows: list[Row]) -> str:
    return "\n".join(
        f"- [`winml {path} {row.term}`](#winml-{md.slug(f'{path} {row.term}')}): {md.escape(row.text)}" for row in rows
    )


def _definition(path: str, row: Row) -> str:
    names = [word for word in row.term.replace(",", " ").replace("/", " ").split() if word.startswith("--")]
    anchor = option_anchor(path, names[0]) if names else _anchor(path, f"argument {row.term}")
    return md.definition(row.term, md.escape(row.text), anchor)


def summary(name: str) -> str:
    """What a command is for, in one sentence."""
    return main.COMMANDS[name][1]


def option_help(path: str, option: str) -> str | None:
    """The help of an option without its default; None when the command does not have it."""
    for parameter in commands()[path].params:
        if isinstance(parameter, click.Option) and option in (*parameter.opts, *parameter.secondary_opts):
            return parameter.help or ""
    return None


def exit_code_line() -> str:
    """The codes a command may end with, as one line with a link."""
    return f"[Exit codes](../exit-codes.md): {', '.join(map(str, EXIT_CODES))}"


def job_lists() -> str:
    """All commands by job, as links from `reference/`."""
    blocks = []
    for job, names in main.JOBS.items():
        rows = [(f"[`winml {name}`](commands/{name}.md)", md.escape(first_sentence(summary(name)))) for name in names]
        blocks += [f"### {job}", md.table(("command", "what it does"), rows)]
    return md.page(*blocks)
