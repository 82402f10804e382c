"""Makes untrusted text safe to show: on a terminal, in Markdown, in HTML, and in a command that is pasted into a shell.

Names of models, nodes, operators, tags and files, and what a runtime says, may hold anything: sequences that move the
cursor or set the clipboard, characters that turn the direction of reading, line ends that forge a line of ours, markup.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any

_INVISIBLE = (
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # directions, joiners, separators
    "\ud800-\udfff"  # halves of characters: names of files that are not UTF-8
    "\U000e0000-\U000e007f"  # tags, which are invisible
    "\ufdd0-\ufdef"  # noncharacters: starts and ends of colours in texts of `render`
)
_CONTROL = "\x00-\x1f\x7f-\x9f"
_UNSAFE = re.compile(f"[{_CONTROL}{_INVISIBLE}]")
_UNSAFE_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_INVISIBLE}]")
_UNSAFE_IN_JSON = re.compile(f"[\x7f-\x9f{_INVISIBLE}]")
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escape(found: re.Match[str]) -> str:
    """A character as Python writes it."""
    character = found[0]
    code = ord(character)
    return _NAMED.get(character) or (
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )


def one_line(text: str) -> str:
    """Text in which everything that is not seen, also the end of a line, is written out."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_escape, text)


def lines(text: str) -> str:
    """The same for text of several lines."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def json_text(text: str) -> str:
    """JSON that means the same and shows what its strings hold; line ends and tabs are escapes there already."""
    return _UNSAFE_IN_JSON.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


_MARKDOWN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", **{c: f"\\{c}" for c in "\\`[]|"}})


def markdown(text: str) -> str:
    """Text that is no markup in Markdown: no link, image, tag, code or end of a cell."""
    return one_line(text).translate(_MARKDOWN)


_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
"""As `html.escape`; importing that module costs more than this one."""


def html(text: str) -> str:
    """Text that is no markup in HTML."""
    return one_line(text).translate(_HTML)


def values(value: Any, safe: Callable[[str], str] = one_line) -> Any:
    """A value with all of its texts, also the keys of its mappings, made safe."""
    if isinstance(value, str):
        return safe(value)
    if is_dataclass(value) and not isinstance(value, type):
        # Not by its constructor, which may reject a text that was made safe.
        made = copy.copy(value)
        for entry in fields(value):
            object.__setattr__(made, entry.name, values(getattr(value, entry.name), safe))
        return made
    if isinstance(value, dict):
        return {safe(key) if isinstance(key, str) else key: values(item, safe) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(values(item, safe) for item in value)
    if isinstance(value, list):
        return [values(item, safe) for item in value]
    return value


_BARE_WINDOWS = re.compile(r"[A-Za-z0-9_+=:./\\-]+")
_WINDOWS = str.maketrans({'"': '""', **{c: f"`{c}" for c in "$`\u201c\u201d\u201e"}})


def shell_word(text: str, *, windows: bool = sys.platform == "win32") -> str:
    """One word of a command that means only itself when it is pasted.

    Windows has two shells: what PowerShell would run inside quotes is escaped for it, and does nothing in cmd.
    """
    if windows:
        shown = one_line(text)
        return shown if _BARE_WINDOWS.fullmatch(shown) else f'"{shown.translate(_WINDOWS)}"'
    if one_line(text) == text:
        import shlex

        return shlex.quote(text)  # noqa: TID251 - this is the one place
    # Half characters in a text may be bytes of a file's name.
    is_name = all("\udc80" <= c <= "\udcff" for c in text if "\ud800" <= c <= "\udfff")
    raw = text.encode("utf-8", "surrogateescape" if is_name else "backslashreplace")
    return "$'" + "".join(chr(b) if 0x20 <= b < 0x7F and b not in b"'\\" else f"\\x{b:02x}" for b in raw) + "'"


def command_line(words: Iterable[str]) -> str:
    """A command that can be pasted: every word means only itself."""
    return " ".join(map(shell_word, words))
