"""How many ways to make a reviewer's git run a command work: `python benchmarks/robustness/git_attacks.py`.

Asks `review.repository` of whatever `winml` is on the path about every folder of `tests/git_attack_zoo.py`. For an
earlier version: `git worktree add /tmp/before COMMIT`, then `PYTHONPATH=/tmp/before/src python ...`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import git_attack_zoo as zoo
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.support.review import repository


def ask(folder: Path, repo: str | None) -> str:
    """What the reviewer learns, in a line."""
    try:
        try:
            from winml.modelkit.support.review.embedded import repositories_inside
        except ImportError:
            pass  # a version that refuses no repository inside a contribution
        else:
            if found := next(repositories_inside(folder), None):
                return f"refused: `{found}` is a repository"
        return f"{len(repository.find_change(folder, repo, None).files)} files differ"
    except (repository.NotAsked, ModelkitError) as error:
        return f"not asked: {error}"


def main() -> None:
    counts = {"attacks": 0, "ran a command": 0, "wrote a file": 0}
    for name, make in zoo.ATTACKS.items():
        with tempfile.TemporaryDirectory() as folder:
            attack = make(zoo.pull_request(Path(folder)))
            before, env = zoo.files_of(Path(folder)), dict(os.environ)
            os.environ.update(attack.env)
            told = ask(attack.folder, attack.repo)
            os.environ.clear()
            os.environ.update(env)
            ran, wrote = attack.mark.exists(), zoo.files_of(Path(folder)) != before
        counts["attacks"] += 1
        counts["ran a command"] += ran
        counts["wrote a file"] += wrote
        print(f"{'RAN  ' if ran else '     '}{'WROTE  ' if wrote else '       '}{name:32} {told}".replace(folder, ""))
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
