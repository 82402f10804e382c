"""Writes the table of docs/export.md from the results of `run.py`, between its two marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results.jsonl", HERE.parents[1] / "docs" / "export.md"
START, END = "<!-- catalog: made by benchmarks/catalog/table.py -->", "<!-- end of catalog -->"
HEAD = (
    "| model | class | parameters | export, s | off PyTorch by | cpu | qnn/npu (simulated) | left on CPU |\n"
    "|---|---|---|---|---|---|---|---|"
)


def placement(row: dict[str, Any] | None) -> tuple[str, str]:
    """How a build went, and what of it a target leaves."""
    if row is None:
        return "not run", ""
    if not row["ok"]:
        return f"failed: {row['error']}", ""
    placed = row["placement"] or {}
    words = ", ".join(f"{op} x{n}" for op, n in placed.get("left", {}).items()) or "nothing"
    return f"{row['precision']}, {placed.get('on_target', '?')} nodes", words


def line(name: str, rows: dict[str, dict[str, Any]]) -> str:
    known = next((row for row in rows.values() if row["ok"]), None)
    cpu, _ = placement(rows.get("cpu"))
    npu, left = placement(rows.get("qnn/npu"))
    if known is None:
        return f"| {name} | | | | | {cpu} | {npu} | {left} |"
    ran = [row["stages"]["export"] for row in rows.values() if row["ok"] and row["stages"]["export"][0] == "miss"]
    seconds = f"{ran[0][1]:.0f}" if ran else ""
    size = f"{known['parameters'] / 1e6:.1f} M"
    return f"| {name} | {known['class']} | {size} | {seconds} | {known['difference']:.0e} | {cpu} | {npu} | {left} |"


def table() -> str:
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for text in RESULTS.read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        rows.setdefault(row["model"], {})[row["target"]] = row
    return "\n".join([HEAD, *(line(name, by_target) for name, by_target in rows.items())])


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{table()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
