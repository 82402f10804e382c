"""The scripts of the shells, and where each shell looks for them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal, get_args

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.location import home
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.store import atomic

Shell = Literal["bash", "zsh", "fish", "powershell"]
SHELLS: tuple[Shell, ...] = get_args(Shell)

_FILES: dict[Shell, str] = {
    "bash": "winml.bash",
    "zsh": "winml.zsh",
    "fish": "winml.fish",
    "powershell": "winml.ps1",
}


@dataclass(frozen=True, kw_only=True)
class CompletionResult:
    schema: Literal["winml/completion/1"] = "winml/completion/1"
    ok: Literal[True] = True
    shell: Shell
    script: str
    files: tuple[str, ...]
    """Files that hold the script now; empty without `--install`."""
    steps: tuple[str, ...]
    """Lines to add to the start file of the shell, which is never changed here."""


def read_script(shell: Shell) -> str:
    """The script of a shell."""
    return Path(__file__).with_name(_FILES[shell]).read_text(encoding="utf-8")


def _data_folder() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base) if base else home() / "AppData" / "Local"
    base = os.environ.get("XDG_DATA_HOME")
    return Path(base) if base else home() / ".local" / "share"


def _find_places(shell: Shell) -> tuple[Path, ...]:
    """Where a shell looks for the script, by the name of each program that it completes."""
    if shell == "bash":
        folder = _data_folder() / "bash-completion" / "completions"
        return folder / "winml", folder / "wmk"
    if shell == "zsh":
        return (_data_folder() / "zsh" / "site-functions" / "_winml",)
    if shell == "fish":
        base = os.environ.get("XDG_CONFIG_HOME")
        folder = (Path(base) if base else home() / ".config") / "fish" / "completions"
        return folder / "winml.fish", folder / "wmk.fish"
    return (_data_folder() / "winml" / "completion.ps1",)


def _list_steps(shell: Shell, places: tuple[Path, ...]) -> tuple[str, ...]:
    """What is left to do: zsh and PowerShell have no folder that they look into by themselves."""
    if shell == "zsh":
        return (f"fpath=({shell_word(str(places[0].parent))} $fpath)", "autoload -Uz compinit && compinit")
    if shell == "powershell":
        quoted = str(places[0]).replace("'", "''")
        return (f". '{quoted}'",)
    return ()


def print_completion(shell: Shell) -> CompletionResult:
    """The script of a shell; nothing is written."""
    return CompletionResult(shell=shell, script=read_script(shell), files=(), steps=())


def install_completion(shell: Shell, *, overwrite: bool = False) -> CompletionResult:
    """Write the script where the shell looks for it; a file with another content is replaced only with `overwrite`."""
    script, places = read_script(shell), _find_places(shell)
    content = script.encode()
    changed = [place for place in places if not place.is_file() or place.read_bytes() != content]
    for place in changed:
        if place.exists() and not overwrite:
            raise RequestError(
                f"`{place}` exists with another content", hint="add `--overwrite` to replace it, or print the script"
            )
        atomic.check_place(place)
    for place in changed:
        atomic.write_bytes(place, content)
    return CompletionResult(shell=shell, script=script, files=tuple(map(str, places)), steps=_list_steps(shell, places))
