"""What mkdocs calls while it builds the site: adds generated pages, fills the navigation, makes links hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import notebook_page
import reference
import site_markdown
import site_nav
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
MOVED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Files beside `docs/` that are pages of the site."""


def _generated() -> dict[str, str]:
    """Pages that are no files of `docs/`, by their path on the site."""
    notebooks = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
    return {
        **reference.make_pages(),
        **{page: (ROOT / name).read_text(encoding="utf-8") for name, page in MOVED.items()},
        **{
            f"notebooks/{path.stem}.md": notebook_page.make_page(path.read_text(encoding="utf-8"), path.name)
            for path in notebooks
        },
    }


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the generated pages and put every page into the navigation."""
    docs = Path(config.docs_dir)
    config.extra["generated"] = _generated()
    texts = {path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8") for path in sorted(docs.rglob("*.md"))}
    texts |= {path: text for path, text in config.extra["generated"].items() if not path.startswith("reference/")}
    config.extra["pages"] = {*texts, *config.extra["generated"]}
    titles = {path: site_markdown.title_of(text) or path for path, text in texts.items()}
    nav = [_fill_reference(entry) for entry in config.nav or ()]
    config.nav = site_nav.expand(nav, config.extra["pages"], order=config.extra.get("order", ()), titles=titles)
    return config


def _fill_reference(entry: Any) -> Any:
    """The section of generated pages, which mkdocs.yml only names."""
    return {"Reference": reference.make_navigation()} if entry == {"Reference": "reference/*.md"} else entry


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for path, text in config.extra["generated"].items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Change links that hold in the repository to links that hold here."""
    path = page.file.src_uri
    if path == "index.md":
        page.meta["hide"] = ["navigation"]  # a list of one page; here, as GitHub shows the head of a file as a table
    if path.startswith("reference/json/"):
        page.meta["search"] = {
            "boost": 0.5
        }  # tables of fields hold every word; who searches mostly wants a page of text
    moved = {page: name for name, page in MOVED.items()}
    place = site_markdown.Place(moved.get(path, f"docs/{path}"), path)
    site = site_markdown.Site(config.extra["pages"], MOVED, config.extra.get("source_url"))
    return site_markdown.prepare(markdown, place, site)
