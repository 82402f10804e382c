"""Chat templates: how a tokenizer wraps a prompt as the turn of a user.

A template is a program in a file from elsewhere. It runs in the sandbox of jinja2, as in transformers: it sees the
messages and the names of special tokens, no attribute that changes a value, and its text has a limit.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from winml.modelkit.core.errors import DataError
from winml.modelkit.data import processor
from winml.modelkit.data.extras import extra

FILE = "chat_template.jinja"
_CONFIG = "tokenizer_config.json"
_DEFAULT = "default"
_SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token")
_MOST_CHARACTERS = 2**22
_MOST_OF_A_TEMPLATE = 2**20
_MOST_OF_A_POWER = 64


def has_chat_template(folder: Path) -> bool:
    """Whether the tokenizer in a folder has a template; one that cannot be read counts as none."""
    try:
        return _read_template(folder) is not None
    except (DataError, OSError):
        return False


class ChatTemplate:
    """The template of the tokenizer in a folder."""

    def __init__(self, folder: Path) -> None:
        text = _read_template(folder)
        if text is None:
            raise DataError(
                f"the tokenizer in `{folder}` has no chat template: there is no {FILE}, and {_CONFIG} has no "
                "`chat_template`",
                hint="drop `--task-option chat=true`; prompts are then given as they are",
            )
        self._special = _read_special(folder)
        self._folder = folder
        sandbox = extra("jinja2.sandbox", name="hf", what="a chat template")
        jinja2 = extra("jinja2", name="hf", what="a chat template")
        environment = sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        # A product may be larger than any memory.
        environment.intercepted_binops = frozenset({"*", "**"})
        environment.binop_table = {**environment.binop_table, "*": _multiply, "**": _raise_to}
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = _format_now
        self._errors = (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError)
        try:
            self._template = environment.from_string(text)
        except self._errors as error:
            raise self._explain(error) from error

    def render(self, prompt: str, where: str) -> str:
        """The prompt as a turn of a user, up to where the answer begins."""
        return self.render_turns([{"role": "user", "content": prompt}], where)

    def render_turns(self, messages: Sequence[Mapping[str, str]], where: str) -> str:
        """The turns of a conversation, each with `role` and `content`, up to where the next answer begins."""
        pieces: list[str] = []
        length = 0
        try:
            for piece in self._template.generate(messages=messages, add_generation_prompt=True, **self._special):
                pieces.append(piece)
                length += len(piece)
                if length > _MOST_CHARACTERS:
                    raise ValueError(f"its text is longer than {_MOST_CHARACTERS} characters")
        except self._errors as error:
            raise self._explain(error, where) from error
        return "".join(pieces)

    def _explain(self, error: Exception, where: str | None = None) -> DataError:
        at = "" if where is None else f" on {where}"
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        return DataError(
            f"the chat template in `{self._folder}` cannot be used{at}: {reason}",
            hint="drop `--task-option chat=true`; prompts are then given as they are",
        )


def _read_template(folder: Path) -> str | None:
    """The text of the template: of its own file, or of the tokenizer's config; None where there is none."""
    path = folder / FILE
    if path.is_file():
        if path.stat().st_size > _MOST_OF_A_TEMPLATE:
            raise DataError(f"`{path}` is larger than {_MOST_OF_A_TEMPLATE} bytes, which no chat template is")
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"`{path}` is not text: {error}") from error
    found = _read_config(folder).get("chat_template")
    if isinstance(found, list):  # several, each with a name
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get(_DEFAULT)
    return found if isinstance(found, str) and found else None


def _read_config(folder: Path) -> Mapping[str, Any]:
    path = folder / _CONFIG
    return processor.read_object(path) if path.is_file() else {}


def _read_special(folder: Path) -> dict[str, str]:
    """Names of special tokens; one may be an object with its text."""
    config = _read_config(folder)
    found: dict[str, str] = {}
    for name in _SPECIAL:
        value = config.get(name)
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            found[name] = value
    return found


def _multiply(left: Any, right: Any) -> Any:
    for one, times in ((left, right), (right, left)):
        if isinstance(one, str | list | tuple) and isinstance(times, int) and len(one) * times > _MOST_CHARACTERS:
            raise ValueError(f"its text is longer than {_MOST_CHARACTERS} characters")
    return left * right


def _raise_to(left: Any, right: Any) -> Any:
    if isinstance(right, int) and abs(right) > _MOST_OF_A_POWER:
        raise ValueError(f"a power of {right} is too large")
    return left**right


def _refuse(message: object) -> NoReturn:
    raise ValueError(str(message))


def _to_json(value: object, ensure_ascii: bool = False, indent: int | None = None, **_: object) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _format_now(form: str) -> str:
    return dt.datetime.now(dt.UTC).strftime(form)
