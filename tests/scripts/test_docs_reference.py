"""The generated reference: everything the program has appears, once, and links between its pages hold."""

from __future__ import annotations

import inspect
import posixpath
import re
from collections import Counter
from pathlib import Path

import click
import md_text
import pytest
import reference
import reference_api
import reference_commands
import reference_json
import site_markdown

import winml.modelkit as wk
from winml.modelkit.cli import main
from winml.modelkit.cli.help_page import long_name
from winml.modelkit.cli.reference import ENVIRONMENT, EXIT_CODES
from winml.modelkit.core.errors import BY_CODE
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog, precision
from winml.modelkit.search import knob_table

ROOT = Path(__file__).parents[2]
COMMANDS = reference_commands.commands()


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference.make_pages()


def _anchors(text: str) -> Counter[str]:
    return Counter(re.findall(r'<a id="([^"]+)"></a>', text))


def _section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next one of its level."""
    level = heading.partition(" ")[0]
    return text.partition(f"\n{heading}\n")[2].partition(f"\n{level} ")[0]


def test_every_command_and_sub_command_has_one_heading(pages: dict[str, str]) -> None:
    headings = [
        heading
        for path, text in pages.items()
        if path.startswith("reference/commands/")
        for heading in re.findall(r"^#{1,2} winml (.+)$", text, re.MULTILINE)
    ]
    assert sorted(headings) == sorted(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_of_a_command_stands_once_on_its_page_with_its_help(path: str, pages: dict[str, str]) -> None:
    text = pages[f"reference/{reference_commands.page_of(path)}"]
    found = _anchors(text)
    for option in COMMANDS[path].params:
        if not isinstance(option, click.Option):
            continue
        anchor = reference_commands.option_anchor(path, long_name(option))
        assert found[anchor] == (0 if option.hidden else 1), option.opts
        if not option.hidden:
            block = text.partition(f'<a id="{anchor}"></a>')[2].partition("<a id=")[0]
            assert md_text.escape((option.help or "").removesuffix(".")) in block


def test_a_page_has_no_option_that_the_command_does_not_have(pages: dict[str, str]) -> None:
    for name in main.COMMANDS:
        known = {
            reference_commands.option_anchor(path, long_name(option))
            for path, command in COMMANDS.items()
            if path.split()[0] == name
            for option in command.params
            if isinstance(option, click.Option)
        }
        shown = {anchor for anchor in _anchors(pages[f"reference/commands/{name}.md"]) if "--" in anchor}
        assert shown <= known


def test_examples_defaults_and_headings_are_those_of_the_help(pages: dict[str, str]) -> None:
    text = pages["reference/commands/perf.md"]
    assert "winml perf --sample\n" in text
    assert "## Measuring" in text
    assert "(default: auto, the first of npu, gpu and cpu among the real devices of this machine)." in text
    assert f"[Exit codes](../exit-codes.md): {', '.join(map(str, EXIT_CODES))}" in text


def test_every_command_names_pages_that_say_more() -> None:
    assert set(reference_commands.IN_DEPTH) == set(main.COMMANDS)
    for names in reference_commands.IN_DEPTH.values():
        assert all((ROOT / f"docs/{name}.md").is_file() for name in names)


def test_every_public_name_has_one_heading_on_the_page_of_the_api(pages: dict[str, str]) -> None:
    headings = Counter(
        heading.replace("\\", "") for heading in re.findall(r"^### (\S+)", pages["reference/api.md"], re.MULTILINE)
    )
    assert headings == Counter(wk.__all__)


@pytest.mark.parametrize("name", reference_api.functions())
def test_every_parameter_of_a_function_is_shown_with_its_default_and_its_meaning(
    name: str, pages: dict[str, str]
) -> None:
    section = _section(pages["reference/api.md"], f"### {name}")
    for parameter in inspect.signature(getattr(wk, name)).parameters.values():
        meaning = reference_api.parameter_meaning(name, parameter.name)
        assert meaning, f"say in reference_api.MEANINGS what `{parameter.name}` is"
        assert f"| `{parameter.name}` | {meaning.split('|')[0][:40]}" in section
        assert re.search(rf"[(*\s]{parameter.name}: ", section)


def test_a_function_links_to_its_command_and_the_document_of_its_result(pages: dict[str, str]) -> None:
    section = _section(pages["reference/api.md"], "### perf")
    assert "[`winml perf`](commands/perf.md)" in section
    assert "[`winml/perf/1`](json/perf.md)" in section
    assert "[`wk.perf`](../api.md#perf)" in pages["reference/commands/perf.md"]
    assert "[`wk.perf`](../api.md#perf) as `PerfResult`" in pages["reference/json/perf.md"]


def test_the_tables_of_the_api_page_name_parameters_that_exist() -> None:
    functions = reference_api.functions()
    parameters = {name: set(inspect.signature(function).parameters) for name, function in functions.items()}
    every = set().union(*parameters.values())
    assert set(reference_api.COMMANDS) <= set(functions)
    assert {*reference_api.OPTIONS, *reference_api.SWITCHED_OFF} <= every
    for key in reference_api.MEANINGS:
        function, _, parameter = key.rpartition(" ")
        assert parameter in (parameters[function] if function else every)


def test_every_schema_has_a_page_with_every_field_of_every_object(pages: dict[str, str]) -> None:
    published = {path.stem.removesuffix("-1") for path in (ROOT / "src/winml/modelkit/schemas").glob("*.json")}
    documented = {path.split("/")[-1].removesuffix(".md") for path in pages if path.startswith("reference/json/")}
    assert documented == published
    for name, schema in reference_json.schemas().items():
        text = pages[f"reference/json/{name}.md"]
        for title, form in schema.get("$defs", {}).items():
            assert text.count(f"\n## {title}\n") == 1
            section = _section(text, f"## {title}")
            for key in form.get("properties", {}):
                assert section.count(f"| `{key}` ") == 1, f"{name}: {title}.{key}"


def test_descriptions_of_fields_and_kinds_of_values_are_shown(pages: dict[str, str]) -> None:
    text = pages["reference/json/perf.md"]
    assert "| `built_for` | string or null | What the build folder that was measured is for;" in text
    assert "| `sessions` | list of [SessionSummary](#sessionsummary) |" in text
    assert "| `error.hint` | string or null |" in text


def test_the_tables_of_the_program_are_there_row_by_row(pages: dict[str, str]) -> None:
    every_knob = {
        knob.name
        for info in catalog.TABLE
        for device in info.devices
        for knob in knob_table.knobs((Target(info.name, device),))
    }
    for page, names in {
        "reference/exit-codes.md": [f'<a id="exit-{code}"></a>{code}' for code in EXIT_CODES],
        "reference/environment.md": [f'<a id="{name}"></a>`{name}`' for name in ENVIRONMENT],
        "reference/precisions.md": [f'<a id="{name}"></a>`{name}`' for name in precision.PRECISIONS],
        "reference/knobs.md": [f'<a id="{name}"></a>`{name}`' for name in every_knob],
        "reference/targets.md": [f"[`{info.name}`](#{info.name})" for info in catalog.TABLE],
    }.items():
        first_cells = Counter(line.split(" | ")[0].removeprefix("| ") for line in pages[page].splitlines())
        assert {name: first_cells[name] for name in names} == dict.fromkeys(names, 1)


def test_every_error_is_on_the_page_of_exit_codes(pages: dict[str, str]) -> None:
    assert all(
        f"| `{code}` | `{error.__name__}` |" in pages["reference/exit-codes.md"] for code, error in BY_CODE.items()
    )


def test_links_between_pages_lead_to_pages_and_anchors(pages: dict[str, str]) -> None:
    anchors = {path: set(site_markdown.anchors(text)) for path, text in pages.items()}
    for path, text in pages.items():
        for target in site_markdown.links(text):
            file, _, anchor = target.partition("#")
            there = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
            if there not in anchors:
                anchors[there] = set(site_markdown.anchors((ROOT / "docs" / there).read_text(encoding="utf-8")))
            assert not anchor or anchor in anchors[there], f"{path}: {target}"


def test_every_generated_page_has_a_place_in_the_navigation(pages: dict[str, str]) -> None:
    def paths(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        inner = entry.values() if isinstance(entry, dict) else entry
        return [path for one in inner for path in paths(one)]  # type: ignore[attr-defined]

    assert Counter(paths(reference.make_navigation())) == Counter([*pages])
