"""The reference page of the Python API, from `winml.modelkit.__all__`, its signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import md_text as md
import reference_commands

import winml.modelkit as wk
from winml.modelkit.api import arguments
from winml.modelkit.core.value_schema import descriptions

COMMANDS = {
    "perf_generation": "perf",
    "build_from_config": "build",
    "compile_multiple_onnx": "compile",
    "evaluate": "eval",
    "matrix": "matrix run",
    "package": "package create",
    "quantize_within": "quantize",
    "sensitivity": "quantize",
    "verify_package": "package verify",
    "trace_diff": "trace diff",
}
"""Function -> its command, where it has another name."""

OPTIONS = {
    "all_targets": "--all",
    "columns": "--column",
    "task_options": "--task-option",
    "dims": "--dim",
    "inputs": "--input-data",
    "int_ranges": "--int-range",
    "models": "--model",
    "shapes": "--shape",
    "skip_existing": "--upload-skip-existing",
}
"""Parameter -> the option with another name that it stands for."""

SWITCHED_OFF = {
    "analyze": "--no-analyze",
    "calibrate": "--no-calibration",
    "confirm": "--no-confirm",
    "fusions": "--no-fusions",
    "optimize": "--no-optimize",
    "parity": "--no-parity",
    "prove": "--no-prove",
    "raise_priority": "--normal-priority",
    "verify": "--no-verify",
}
"""Parameter -> the option that is its opposite."""

MEANINGS = {
    "after": "The later trace.",
    "base": "The model that the candidates are compared with.",
    "before": "The earlier trace.",
    "builds": "Folders of builds of one model.",
    "candidates": "Models, build folders or build configs; none when one model is compared over several targets.",
    "licenses": "Licence files to include.",
    "key_password": "The password of the key, where it has one.",
    "load_package public_key": "The public key that the package must be signed with: a file, or the key itself.",
    "load_package path": "A package: a folder, or an archive.",
    "perf_generation model": "A folder that generates text.",
    "sensitivity model": "The model, as `winml quantize -m` takes it.",
    "verify_package path": "A package: a folder, or an archive.",
    "compile_multiple_onnx config": "A build config: its `target`, and its `compile` section unless the defaults do.",
    "compile_multiple_onnx model_paths": "ONNX files.",
    "compile_multiple_onnx output_path": "A folder, or for a single model a file that ends in `.onnx`.",
    "compile_multiple_onnx validate": "Whether outputs are compared with those of the source.",
    "fail_if_unsupported": "Raise `CheckFailed` when a target does not support all of the model.",
    "on_event": "A function that gets every event of the work (`wk.Event`).",
    "other": "A second run, which stands beside the first.",
    "output": "The file or folder to write.",
    "overwrite": "Replace what is there.",
    "progress": "Whether a line of progress is shown on stderr; by default in a terminal and in a notebook.",
    "report figure": "The picture to write as SVG.",
    "run": "A file or folder that a command wrote, or a result; none for the findings of this user.",
    "section": "Keys of the quantize section that differ from what the precision says.",
    "trust": "Options that a config may hold though they name libraries or files.",
}
"""Parameter, alone or behind its function -> its meaning, where no option of the command has it."""


def functions() -> dict[str, Any]:
    """The public functions by name."""
    return {name: found for name in wk.__all__ if inspect.isfunction(found := getattr(wk, name))}


def classes() -> dict[str, Any]:
    """The public classes by name."""
    return {name: found for name in wk.__all__ if inspect.isclass(found := getattr(wk, name))}


def modules() -> dict[str, ModuleType]:
    """The public modules by name."""
    return {name: found for name in wk.__all__ if inspect.ismodule(found := getattr(wk, name))}


def command_of(function: str) -> str | None:
    """The command that a function stands for; None for a function of its own."""
    path = COMMANDS.get(function, function)
    return path if path in reference_commands.commands() else None


def result_names(function: str) -> list[str]:
    """The classes that a function returns."""
    returned = str(inspect.signature(functions()[function]).return_annotation)
    return [name for name in (part.strip() for part in returned.split("|")) if name in classes()]


def make_page(documents: dict[str, list[str]]) -> str:
    """The page; `documents` are the JSON documents of each class."""
    return md.page(
        "# Python API",
        "What `import winml.modelkit as wk` has. [From Python](../api.md) explains it by example and says what stays.",
        md.fence("python", "import winml.modelkit as wk"),
        "## Functions",
        *(block for name in functions() for block in _function_blocks(name, documents)),
        "## Types of arguments",
        "A parameter with one of these types takes:",
        md.table(("type", "is", "meaning"), _aliases()),
        "## Classes",
        *(block for name in classes() for block in _class_blocks(name, documents)),
        "## Modules and constants",
        *(block for name in modules() for block in _module_blocks(name)),
        "### \\_\\_version\\_\\_ { #version }",
        "The version of the package, as text.",
    )


def _function_blocks(name: str, documents: dict[str, list[str]]) -> Iterator[str]:
    function = functions()[name]
    yield f"### {name}"
    yield md.fence("python", _signature_text(f"wk.{name}", inspect.signature(function)))
    yield _docstring(function)
    links = [_document_links(one, documents) for one in result_names(name)]
    path = command_of(name)
    if path is not None:
        anchor = "" if " " not in path else f"#winml-{md.slug(path)}"
        links.insert(0, f"Command: [`winml {path}`]({reference_commands.page_of(path)}{anchor})")
    if links:
        yield "\n".join(f"- {line}" for line in links)
    parameters = inspect.signature(function).parameters
    if parameters:
        yield md.table(("parameter", "meaning"), [(f"`{one}`", parameter_meaning(name, one)) for one in parameters])


def _document_links(cls: str, documents: dict[str, list[str]]) -> str:
    links = ", ".join(f"[`winml/{one}/1`](json/{one}.md)" for one in documents.get(cls, []))
    return f"Result: [`{cls}`](#{cls.lower()})" + (f", in JSON {links}" if links else "")


def _signature_text(name: str, signature: inspect.Signature) -> str:
    """A signature over several lines where one is too short."""
    found = signature.replace(
        parameters=[one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    )
    text = str(found).replace("'", "") if not _has_text_default(found) else _without_quotes(found)
    if len(name + text) <= 88:
        return f"{name}{text}"
    lines, star = [], False
    for one in found.parameters.values():
        if (
            one.kind is one.KEYWORD_ONLY
            and not star
            and not any(p.kind is p.VAR_POSITIONAL for p in found.parameters.values())
        ):
            lines.append("    *,")
        star = star or one.kind is one.KEYWORD_ONLY
        lines.append(f"    {_parameter_text(one)},")
    returned = "" if found.return_annotation is found.empty else f" -> {_type_text(found.return_annotation)}"
    return "\n".join([f"{name}(", *lines, f"){returned}"])


def _has_text_default(signature: inspect.Signature) -> bool:
    return any(isinstance(one.default, str) for one in signature.parameters.values())


def _without_quotes(signature: inspect.Signature) -> str:
    inner = ", ".join(_parameter_text(one) for one in signature.parameters.values())
    return f"({inner}) -> {_type_text(signature.return_annotation)}"


def _parameter_text(parameter: inspect.Parameter) -> str:
    stars = (
        "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    )
    text = f"{stars}{parameter.name}"
    if parameter.annotation is not parameter.empty:
        text += f": {_type_text(parameter.annotation)}"
    return text if parameter.default is parameter.empty else f"{text} = {_default_text(parameter.default)}"


def _default_text(value: Any) -> str:
    shown = repr(value)
    return "..." if shown.startswith("<") or is_dataclass(value) else shown


def _type_text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _docstring(thing: Any) -> str:
    """A docstring as Markdown; an indented part of it is code."""
    return inspect.cleandoc(thing.__doc__ or "")


def parameter_meaning(function: str, parameter: str) -> str:
    """What a parameter means: by its option, the table here, or the sentence of the docstring that names it."""
    own = MEANINGS.get(f"{function} {parameter}")
    if own is not None:
        return own
    path = command_of(function)
    if path is not None:
        off = SWITCHED_OFF.get(parameter, "")
        off_help = reference_commands.option_help(path, off)
        if off_help is not None:
            return f"`False` is {_option_link(path, off)}: {md.escape(off_help)}"
        option = OPTIONS.get(parameter, "--" + parameter.replace("_", "-"))
        option_help = reference_commands.option_help(path, option)
        if option_help is not None:
            return f"{md.escape(option_help)} {_option_link(path, option)}"
    return MEANINGS.get(parameter) or _sentence_about(parameter, functions()[function])


def _sentence_about(parameter: str, function: Any) -> str:
    """The first sentence of a docstring that names a parameter; nothing when there is none."""
    sentences = re.split(r"(?<=\.)\s+", " ".join(_docstring(function).split()))
    return next((one for one in sentences if f"`{parameter}`" in one), "")


def _option_link(path: str, option: str) -> str:
    return f"[`{option}`]({reference_commands.page_of(path)}#{reference_commands.option_anchor(path, option)})"


def _aliases() -> list[tuple[str, str, str]]:
    """Names of types that `api/arguments.py` declares, each with the text below it."""
    source = Path(inspect.getsourcefile(arguments) or "")
    block = next(
        node.body
        for node in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    found: list[tuple[str, str, str]] = []
    for node in block:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            found.append((f"`{ast.unparse(node.target)}`", f"`{ast.unparse(node.value)}`", ""))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and found:
            found[-1] = (*found[-1][:2], " ".join(str(node.value.value).split()))
    return found


def _class_blocks(name: str, documents: dict[str, list[str]]) -> Iterator[str]:
    cls = classes()[name]
    yield f"### {name}"
    yield _class_docstring(cls)
    links = ", ".join(f"[`winml/{one}/1`](json/{one}.md)" for one in documents.get(name, []))
    if links:
        yield f"Its fields are those of {links}. Like every result it is a [`CommandResult`](#commandresult)."
    if issubclass(cls, Exception):
        yield f"`code` is `{cls.code}`, `exit_code` is {cls.exit_code}."
    if cls.__init__ is not object.__init__ and not is_dataclass(cls):
        yield md.fence("python", _signature_text(f"wk.{name}", inspect.signature(cls)).removesuffix(" -> None"))
        yield "" if issubclass(cls, Exception) else _docstring(cls.__init__)
    yield _member_table(cls, show_fields=not links)


def _class_docstring(cls: Any) -> str:
    text = inspect.cleandoc(vars(cls).get("__doc__") or "")
    return "" if text.startswith(f"{cls.__name__}(") else text


def _member_table(cls: Any, *, show_fields: bool) -> str:
    """What a class has besides the fields that its JSON page lists."""
    rows = []
    texts = descriptions(cls)
    if show_fields and is_dataclass(cls):
        hints = inspect.get_annotations(cls)
        rows += [(f"`{name}`", f"`{form}`", md.escape(texts.get(name, ""))) for name, form in hints.items()]
    for name, member in vars(cls).items():
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(member, property) and not getattr(member.fget, "in_json", False):
            returned = inspect.get_annotations(member.fget).get("return", "")
            rows.append((f"`{name}`", f"`{returned}`", _one_line(member)))
        elif inspect.isfunction(member) and name not in ("to_value", "from_value"):
            shown = "session" if name == "__call__" else name
            rows.append((f"`{name}`", f"`{_one_line_signature(shown, member)}`", _one_line(member)))
    return md.table(("member", "type", "meaning"), rows) if rows else ""


def _one_line_signature(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    inner = ", ".join(_parameter_text(one) for one in signature.parameters.values() if one.name != "self")
    return f"{name}({inner}) -> {_type_text(signature.return_annotation)}"


def _one_line(thing: Any) -> str:
    return " ".join(inspect.cleandoc(thing.__doc__ or "").split())


def _module_blocks(name: str) -> Iterator[str]:
    module = modules()[name]
    yield f"### {name}"
    text = inspect.cleandoc(module.__doc__ or "")
    head, _, rest = text.partition("\n")
    yield head
    if name == "errors":
        tree = "\n".join(line for line in rest.strip("\n").splitlines() if line.startswith("    "))
        yield md.fence("text", inspect.cleandoc(tree))
        yield "The codes are explained in [Exit codes](exit-codes.md)."
    constants = [(f"`wk.{name}.{one}`", type(value).__name__) for one, value in vars(module).items() if one.isupper()]
    if name == "sample":
        yield md.table(("constant", "type"), [(one, "`pathlib.Path`") for one, _ in constants])
