"""Write the catalog of `winml catalog` and its page in the docs from what was measured.

    python scripts/make_catalog.py

Families and tasks are those of the exporter. Proofs are the lines of `benchmarks/catalog/results/*.jsonl`, each with the
fields of `knowledge/catalog.py`; a line that does not fit is an error with its place.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import RequestError
from winml.modelkit.knowledge import catalog, files
from winml.modelkit.render.catalog import catalog_markdown
from winml.modelkit.stages.export.families import FAMILIES, parts_of, tasks_of

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "catalog" / "results"
PAGE = ROOT / "docs" / "catalog.md"
BEGIN, END = "<!-- made by scripts/make_catalog.py -->", "<!-- end -->"


def _families() -> list[catalog.Family]:
    found = []
    for name, family in FAMILIES.items():
        tasks = tasks_of(family)
        found.append(catalog.Family(name, family.modality, parts_of(family, tasks[0]), tasks))
    return found


def _proofs() -> list[catalog.Proof]:
    found = []
    for path in sorted(RESULTS.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                proof = catalog.proof_from_json(json.loads(line))
            except (ValueError, RequestError) as error:
                raise SystemExit(f"{path.name}, line {number}: {error}") from error
            if proof.family not in FAMILIES:
                raise SystemExit(f"{path.name}, line {number}: no family `{proof.family}`")
            found.append(proof)
    order = list(FAMILIES)
    return sorted(found, key=lambda p: (order.index(p.family), p.model, p.target))


def _rows(made: catalog.Catalog) -> list[dict[str, Any]]:
    return [{"proofs": [sections.plain(p) for p in made.proofs if p.family == f.name]} for f in made.families]


def main() -> None:
    made = catalog.Catalog(catalog.SCHEMA, tuple(_families()), tuple(_proofs()))
    catalog.FILE.write_bytes(files.text(sections.plain(made)))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page = f"{before}{BEGIN}\n\n{catalog_markdown(_rows(made))}\n\n{END}{after}"
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
