"""A notebook as a page: its texts, its code, and the outputs it was saved with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import md_text as md


def make_page(text: str, name: str) -> str:
    """The Markdown of a notebook; `name` is its file, which the page offers for download."""
    notebook = json.loads(text)
    blocks = [block for cell in notebook["cells"] for block in _cell_blocks(cell)]
    if not any(block.lstrip().startswith("# ") for block in blocks[:1]):
        blocks.insert(0, f"# {name.removesuffix('.ipynb').replace('-', ' ').capitalize()}")
    return md.page(blocks[0], f"[Download this notebook]({name})", *blocks[1:])


def _join(value: Any) -> str:
    return value if isinstance(value, str) else "".join(value)


def _cell_blocks(cell: dict[str, Any]) -> Iterator[str]:
    source = _join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
    elif cell["cell_type"] == "code" and source.strip():
        yield md.fence("python", source)
        for output in cell.get("outputs", ()):
            yield from _output_blocks(output)


def _output_blocks(output: dict[str, Any]) -> Iterator[str]:
    kind = output["output_type"]
    if kind == "stream":
        yield md.fence("text", _join(output["text"]))
    elif kind == "error":
        yield md.fence("text", f"{output['ename']}: {output['evalue']}")
    else:
        yield from _data_blocks(output["data"])


def _data_blocks(data: dict[str, Any]) -> Iterator[str]:
    if "text/html" in data:
        # An empty line inside would end the HTML and begin Markdown.
        inner = re.sub(r"\n\s*\n", "\n", _join(data["text/html"]).strip())
        yield f'<div class="notebook-output">\n{inner}\n</div>'
    elif "image/svg+xml" in data:
        yield f'<div class="notebook-output">{re.sub(chr(10), " ", _join(data["image/svg+xml"]))}</div>'
    elif "image/png" in data:
        encoded = "".join(_join(data["image/png"]).split())
        yield f'<img alt="output" src="data:image/png;base64,{encoded}">'
    elif "text/plain" in data:
        yield md.fence("text", _join(data["text/plain"]))
