"""Citation, changelog and templates have the form that others read them by."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import winml.modelkit as wk

ROOT = Path(__file__).parents[2]
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")

# Of the schema of the Citation File Format 1.2.0.
CFF_REQUIRED = {"authors", "cff-version", "message", "title"}
CFF_KEYS = {
    *CFF_REQUIRED, "abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords", "license",
    "license-url", "preferred-citation", "references", "repository", "repository-artifact", "repository-code", "type",
    "url", "version",
}  # fmt: skip
CFF_ENTITY = {
    "address", "alias", "city", "country", "date-end", "date-start", "email", "fax", "location", "name", "orcid",
    "post-code", "region", "tel", "website",
}  # fmt: skip

# Of the format Keep a Changelog 1.1.0.
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
VERSION = re.compile(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}( \[YANKED\])?")

# Of GitHub's syntax of issue forms: what each type of element takes.
ATTRIBUTES = {
    "markdown": {"value"},
    "textarea": {"label", "description", "placeholder", "value", "render"},
    "input": {"label", "description", "placeholder", "value"},
    "dropdown": {"label", "description", "multiple", "options", "default"},
    "checkboxes": {"label", "description", "options"},
}


def _project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def citation_faults(cited: dict[str, Any]) -> list[str]:
    """What the schema of the format would refuse."""
    faults = [f"missing {key}" for key in sorted(CFF_REQUIRED - set(cited))]
    faults += [f"unknown {key}" for key in sorted(set(cited) - CFF_KEYS)]
    if cited.get("cff-version") != "1.2.0":
        faults.append("cff-version")
    if cited.get("type", "software") not in ("software", "dataset"):
        faults.append("type")
    authors = cited.get("authors") or []
    if not authors or any("name" not in author or set(author) - CFF_ENTITY for author in authors):
        faults.append("authors")
    words = cited.get("keywords", ["one"])
    if not words or len(words) != len(set(words)) or not all(isinstance(word, str) and word for word in words):
        faults.append("keywords")
    texts = ("abstract", "license", "message", "title", "version")
    return faults + [key for key in texts if key in cited and not (isinstance(cited[key], str) and cited[key])]


def changelog_faults(text: str) -> list[str]:
    """Headings that the format does not have, in the order of lines, and sections without an entry."""
    faults, seen, versions = [], [], []
    headings = [line for line in text.splitlines() if line.startswith("#")]
    for line in headings:
        level, _, name = line.partition(" ")
        if level == "##":
            seen = []
            versions.append(name)
            if not (VERSION.fullmatch(name) or (name == "[Unreleased]" and len(versions) == 1)):
                faults.append(line)
        elif level == "###":
            if name not in KINDS or name in seen:
                faults.append(line)
            seen.append(name)
        elif line != "# Changelog":
            faults.append(line)
    empty = re.findall(r"^(### .*)\n\n*(?=#|\Z)", text, re.MULTILINE)
    return [*faults, *empty] or ([] if versions[:1] == ["[Unreleased]"] else ["no [Unreleased]"])


def form_faults(form: dict[str, Any]) -> list[str]:
    """What GitHub would not show."""
    faults = [f"missing {key}" for key in ("name", "description", "body") if not form.get(key)]
    ids = [element["id"] for element in form["body"] if "id" in element]
    faults += [name for name in ids if ids.count(name) > 1]
    for element in form["body"]:
        known = ATTRIBUTES.get(element["type"])
        needed = "value" if element["type"] == "markdown" else "label"
        if known is None or set(element["attributes"]) - known or needed not in element["attributes"]:
            faults.append(str(element))
        # YAML reads a bare yes as true, which GitHub refuses.
        faults += [f"option {o}" for o in element["attributes"].get("options", ()) if isinstance(o, bool)]
    return faults


def test_the_citation_is_valid_and_that_of_this_package() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation_faults(cited) == []
    project = _project()
    assert (cited["version"], cited["license"]) == (wk.__version__, project["license"])
    assert cited["keywords"] == project["keywords"]
    assert cited["abstract"].strip() == project["description"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"authors": []}, "authors"),
        ({"authors": [{"name": "A", "nick": "B"}]}, "authors"),
        ({"cff-version": "1.1.0"}, "cff-version"),
        ({"version": 0.1}, "version"),
        ({"homepage": "x"}, "unknown homepage"),
        ({"keywords": ["a", "a"]}, "keywords"),
        ({"title": None}, "title"),
    ],
)
def test_a_citation_that_the_format_refuses_is_found(change: dict[str, Any], fault: str) -> None:
    good = {"cff-version": "1.2.0", "message": "m", "title": "t", "authors": [{"name": "n"}]}
    assert citation_faults(good) == []
    assert citation_faults({**good, **change}) == [fault]


def test_the_changelog_is_in_its_format() -> None:
    assert changelog_faults((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("# Changelog\n## [Unreleased]\n### New\n- a\n", "### New"),
        ("# Changelog\n## [Unreleased]\n### Added\n- a\n### Added\n- b\n", "### Added"),
        ("# Changelog\n## [Unreleased]\n### Added\n\n## [0.1.0] - 2026-01-31\n### Fixed\n- a\n", "### Added"),
        ("# Changelog\n## [Unreleased]\n## 0.1.0\n", "## 0.1.0"),
        ("# Changelog\n## [0.1.0] - 2026-01-31\n### Fixed\n- a\n", "no [Unreleased]"),
    ],
)
def test_a_changelog_of_another_form_is_found(text: str, fault: str) -> None:
    assert changelog_faults(text) == [fault]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_one_that_github_shows(path: Path) -> None:
    assert form_faults(yaml.safe_load(path.read_text(encoding="utf-8"))) == []


def test_there_is_a_form_for_each_kind_of_issue_and_bugs_come_with_the_report_of_the_machine() -> None:
    assert [path.stem for path in FORMS] == ["bug", "feature", "model-family"]
    bug = yaml.safe_load(FORMS[0].read_text(encoding="utf-8"))
    system = next(element for element in bug["body"] if element.get("id") == "system")
    assert system["attributes"]["label"] == "winml sys --json"
    assert system["validations"]["required"] is True


def test_a_form_that_github_refuses_is_found() -> None:
    option = {"type": "dropdown", "attributes": {"label": "l", "options": [True]}}
    unknown = {"type": "textarea", "attributes": {"label": "l", "rows": 3}}
    assert len(form_faults({"name": "n", "description": "d", "body": [option, unknown]})) == 2
