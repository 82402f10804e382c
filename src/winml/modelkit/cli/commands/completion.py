"""`winml completion`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import HELP, examples, json_option

_SHELLS = ("bash", "zsh", "fish", "powershell")


@click.command(
    "completion",
    cls=Command,
    help="Print the script that completes commands, options, targets, precisions, tasks, models and run folders in a "
    "shell. For this terminal: `source <(winml completion bash)`, and the same in zsh; in fish pipe `winml completion "
    "fish` to `source`, in PowerShell `winml completion powershell` to `Out-String | Invoke-Expression`. For every "
    "terminal: add that to the start file of the shell (~/.bashrc, ~/.zshrc after compinit, "
    "~/.config/fish/config.fish, $PROFILE), or let --install write the script where the shell looks for it.",
    epilog=examples("winml completion bash", "winml completion bash --install", "winml completion fish --json"),
    context_settings=HELP,
)
@click.argument("shell", type=click.Choice(_SHELLS, case_sensitive=False))
@click.option("--install", is_flag=True, help="Write the script to the folder of completions of the user.")
@click.option("--overwrite", is_flag=True, help="Replace a file with another content, with --install.")
@json_option
def command(shell: Any, install: bool, overwrite: bool, as_json: bool) -> None:
    from winml.modelkit.cli.completion.scripts import install_completion, print_completion
    from winml.modelkit.render.completion import installed_text

    if overwrite and not install:
        raise click.UsageError("`--overwrite` is for `--install`")
    result = install_completion(shell, overwrite=overwrite) if install else print_completion(shell)
    if as_json:
        console.data_json(result)
    elif install:
        console.show(installed_text, result)
    else:
        console.data(result.script.rstrip("\n"))
