"""How a shell's script asks, winml --complete SHELL INDEX WORD..., and how the answer is written.

WORDs are those after the name of the program, as the shell has them; INDEX is that of the word at the cursor, which may
be missing when it is empty. The answer is a list of entries, each ended by NUL, which no name can hold. The first is
`words` or `files`. An entry of `words` is a value, a tab and a description; an entry of `files` is a name only.
"""

from __future__ import annotations

import sys
from dataclasses import field
from typing import Literal

from winml.modelkit.core.dataclass import dataclass

Kind = Literal["words", "files"]

_BREAKS = frozenset("=:")
"""Characters that end a word in bash (`COMP_WORDBREAKS`) and are part of ours."""


@dataclass(frozen=True)
class Answer:
    """What a word at the cursor may become, with a description of each."""

    kind: Kind
    values: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """Words before the cursor and the one at it, as the program would get them."""

    before: tuple[str, ...]
    current: str
    shown: str = ""
    """What the shell does not replace of the current word: bash ends words at `=` and `:`."""


def read_question(shell: str, index: int, words: list[str]) -> Question:
    """The question of a shell, in the words of the program."""
    words = [*words, ""][: index + 1] if index >= len(words) else words[: index + 1]
    if shell == "bash":
        merged, shown = _merge_pieces(words)
        return Question(tuple(map(unquote, merged[:-1])), unquote(merged[-1]), unquote(shown))
    # All but the word at the cursor have no quotes any more, which may still be open there.
    current = words[-1] if shell == "powershell" else unquote(words[-1])
    is_value = shell == "zsh" and current.startswith("--") and "=" in current
    return Question(tuple(words[:-1]), current, current[: current.index("=") + 1] if is_value else "")


def _merge_pieces(words: list[str]) -> tuple[list[str], str]:
    """Words that bash took apart put together again, and the part of the last one that bash does not replace."""
    merged: list[str] = []
    shown, is_open = "", False
    for word in words:
        is_break = bool(word) and _BREAKS.issuperset(word)
        if merged and (is_break or is_open):
            shown = merged[-1] + (word if is_break else "")
            merged[-1] += word
        else:
            shown = ""
            merged.append(word)
        is_open = is_break
    return merged, shown


def unquote(word: str) -> str:
    """A word without the quotes and backslashes of a shell, the last quote perhaps still open; nothing is expanded."""
    plain: list[str] = []
    quote = ""
    characters = iter(word)
    for character in characters:
        if character == "\\" and quote != "'":
            following = next(characters, "")
            # Inside double quotes a backslash stays before anything that it does not escape.
            plain.append(following if not quote or following in '"\\$`' else f"\\{following}")
        elif character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote = character
        else:
            plain.append(character)
    return "".join(plain)


def write_answer(shell: str, question: Question, answer: Answer) -> None:
    """Write the entries that go on with the word at the cursor."""
    found = {value: text for value, text in answer.values.items() if value.startswith(question.current)}
    entries: list[str] = [answer.kind]
    for value, description in found.items():
        shown = value.removeprefix(question.shown)
        if answer.kind == "words":
            entries.append(f"{shown}\t{description}")
        elif shell != "fish" or "\t" not in shown:
            entries.append(shown)  # fish takes what follows a tab for a description
    text = "".join(f"{entry}\0" for entry in entries)
    # Bytes of a name that are no UTF-8 stay what they are; names on Windows have none.
    sys.stdout.buffer.write(text.encode("utf-8", "replace" if sys.platform == "win32" else "surrogateescape"))
    sys.stdout.buffer.flush()
