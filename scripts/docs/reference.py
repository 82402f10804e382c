"""All generated reference pages of the site: their paths below `docs/`, texts and places in the navigation."""

from __future__ import annotations

import inspect

import md_text as md
import reference_api
import reference_commands
import reference_json
import reference_tables

from winml.modelkit.cli import main

INDEX = "reference/index.md"


def make_pages() -> dict[str, str]:
    """Every generated page by its path."""
    documents = reference_json.documents_by_class()
    commands = reference_commands.make_pages({name: _command_links(name) for name in main.COMMANDS})
    return {
        INDEX: _index(),
        **{f"reference/commands/{name}.md": text for name, text in commands.items()},
        "reference/api.md": reference_api.make_page(documents),
        **{
            f"reference/json/{name}.md": reference_json.make_page(name, _document_links(name, documents))
            for name in reference_json.schemas()
        },
        "reference/exit-codes.md": reference_tables.exit_codes_page(),
        "reference/environment.md": reference_tables.environment_page(),
        "reference/knobs.md": reference_tables.knobs_page(),
        "reference/precisions.md": reference_tables.precisions_page(),
        "reference/targets.md": reference_tables.targets_page(),
    }


def make_navigation() -> list[object]:
    """The entries of the section, as `nav` of mkdocs.yml takes them."""
    return [
        INDEX,
        {"Commands": [{f"winml {name}": f"reference/commands/{name}.md"} for name in sorted(main.COMMANDS)]},
        {"Python API": "reference/api.md"},
        {"JSON documents": [{name: f"reference/json/{name}.md"} for name in reference_json.schemas()]},
        {"Exit codes": "reference/exit-codes.md"},
        {"Environment variables": "reference/environment.md"},
        {"Execution providers and targets": "reference/targets.md"},
        {"Precisions": "reference/precisions.md"},
        {"Knobs of a search": "reference/knobs.md"},
    ]


def _functions_of(command: str) -> list[str]:
    return [
        name
        for name in reference_api.functions()
        if (path := reference_api.command_of(name)) is not None and path.split()[0] == command
    ]


def _command_links(command: str) -> list[str]:
    lines = []
    functions = _functions_of(command)
    if functions:
        lines.append("Python: " + ", ".join(f"[`wk.{name}`](../api.md#{name})" for name in functions))
    documents = _documents_of(command)
    if documents:
        lines.append("JSON: " + ", ".join(f"[`winml/{name}/1`](../json/{name}.md)" for name in documents))
    pages = reference_commands.IN_DEPTH.get(command, ())
    if pages:
        lines.append("In depth: " + ", ".join(f"[{name}](../../{name}.md)" for name in pages))
    return [*lines, reference_commands.exit_code_line()]


def _documents_of(command: str) -> list[str]:
    """The documents whose title says that they are results of a command."""
    return [
        name
        for name, schema in reference_json.schemas().items()
        if schema.get("title", "").startswith("Result of") and f"`winml {command}`" in schema["title"]
    ]


def _document_links(name: str, documents: dict[str, list[str]]) -> list[str]:
    lines = [
        f"Written by [`winml {one} --json`](../commands/{one}.md)"
        for one in main.COMMANDS
        if name in _documents_of(one)
    ]
    classes = [cls for cls, names in documents.items() if name in names]
    for function in reference_api.functions():
        found = [cls for cls in reference_api.result_names(function) if cls in classes]
        if found:
            lines.append(f"Returned by [`wk.{function}`](../api.md#{function}) as `{found[0]}`")
    return [*lines, f"Schema: `src/winml/modelkit/schemas/{name}-1.json`"]


def _index() -> str:
    functions = [
        (f"[`wk.{name}`](api.md#{name})", md.escape(inspect.cleandoc(function.__doc__ or "").partition("\n")[0]))
        for name, function in reference_api.functions().items()
    ]
    documents = [
        (f"[`winml/{name}/1`](json/{name}.md)", md.escape(schema.get("title", "")))
        for name, schema in reference_json.schemas().items()
    ]
    return md.page(
        "# Reference",
        "Made from the program itself when this site is built: what is here is what it has.",
        "[Exit codes](exit-codes.md) · [Environment variables](environment.md) ·"
        " [Execution providers and targets](targets.md) · [Precisions](precisions.md) · [Knobs of a search](knobs.md)",
        "## Commands",
        "Every command takes `--json` (one JSON object on stdout, also on failure), `-q` (no progress and notes),"
        " `--help` (common options, with examples) and `--help-all` (all options).",
        reference_commands.job_lists(),
        "## Python functions",
        md.table(("function", "what it does"), functions),
        "## JSON documents",
        "With `--json` a command writes one of these; files that `winml` writes and reads are documents, too.",
        md.table(("document", "what it holds"), documents),
    )
