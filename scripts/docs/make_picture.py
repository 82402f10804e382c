"""Draws the picture of the first page, docs/images/autoconfig.svg, from a real search of the sample.

    python scripts/docs/make_picture.py               run the command of the first page (about two minutes), then draw
    python scripts/docs/make_picture.py --from DIR    draw the search in a folder; DIR/../out.txt has its text

It also writes the numbers of the run into docs/index.md: the output below the command, and the caption.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

from winml.modelkit.core.values import read
from winml.modelkit.render.autoconfig import artifact_size, gain, quality
from winml.modelkit.search.result import SearchResult, TrialResult

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/index.md"
PICTURE = ROOT / "docs/images/autoconfig.svg"
COMMAND = ("autoconfig", "--sample", "--target", "cpu", "--budget", "3m", "-o", "found")

WIDTH, ROW, TOP, LEFT, BAR = 640, 74, 92, 28, 360
BACK, TEXT, SOFT, CHAMPION, OTHER = "#1f2430", "#e6e9ef", "#9aa4b5", "#4cc38a", "#5b7fbf"
"""One dark card that stands out from a light page and does not glare on a dark one."""
CAPTION = re.compile(r"(<!-- caption -->\n).*?(\n<!-- end of caption -->)", re.DOTALL)
OUTPUT = re.compile(r"(<!-- output -->\n```text\n).*?(```\n)", re.DOTALL)


def draw(result: SearchResult) -> str:
    """The trials of a search as bars of their time, fastest first; the champion in another colour."""
    timed = sorted(
        (_ms(trial), trial.id)
        for trial in result.trials
        if trial.times is not None and trial.times.candidate_ms.median is not None
    )
    trials = {trial.id: trial for trial in result.trials}
    height = TOP + ROW * len(timed) + 14
    first = trials[timed[0][1]].times
    measured = {"cpu": "CPU time", "wall": "Time"}[first.metric if first is not None else "wall"]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="17">',
        f"<title>{escape(describe(result))}</title>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="12" fill="{BACK}" stroke="#3a4254"/>',
        f'<text x="{LEFT}" y="38" fill="{TEXT}" font-family="ui-monospace, monospace" font-size="16">'
        f"$ winml {' '.join(COMMAND[:-2])}</text>",
        f'<text x="{LEFT}" y="66" fill="{SOFT}" font-size="15">{measured} per run of each config, its accuracy and size'
        "</text>",
    ]
    for place, (_, name) in enumerate(timed):
        is_champion = result.champion is not None and result.champion.trial.id == name
        parts += _row(trials[name], TOP + ROW * place, longest=timed[-1][0], is_champion=is_champion)
    return "\n".join([*parts, "</svg>\n"])


def _ms(trial: TrialResult) -> float:
    assert trial.times is not None
    assert trial.times.candidate_ms.median is not None
    return trial.times.candidate_ms.median


def _row(trial: TrialResult, y: int, *, longest: float, is_champion: bool) -> list[str]:
    ms = _ms(trial)
    colour = CHAMPION if is_champion else OTHER
    width = max(4.0, BAR * ms / longest)
    name = "the model as it is" if trial.outcome == "baseline" else trial.label
    speed = gain(trial.deciding_verdict)
    facts = f"accuracy {quality(trial.accuracy)} · {artifact_size(trial)}"
    return [
        f'<text x="{LEFT}" y="{y + 16}" fill="{TEXT}">{escape(name)}</text>',
        f'<text x="{WIDTH - LEFT}" y="{y + 16}" fill="{SOFT}" font-size="15" text-anchor="end">{escape(facts)}</text>',
        f'<rect x="{LEFT}" y="{y + 26}" width="{width:.1f}" height="24" rx="4" fill="{colour}"/>',
        f'<text x="{LEFT + width + 10:.1f}" y="{y + 44}" fill="{TEXT}" font-weight="600">{ms:.2f} ms'
        f'<tspan dx="10" fill="{colour if is_champion else SOFT}">{escape(speed)}</tspan></text>',
    ]


def describe(result: SearchResult) -> str:
    """What was run, and on what."""
    environment = result.environment
    machine, runtime = environment.machine, environment.runtime
    return (
        f"{len(result.trials)} configs of the sample, a digits classifier, on {machine.cores} cores of an"
        f" {machine.cpu} with {runtime.name} {runtime.version}, in {result.seconds:.0f} s; the load of the machine was"
        f" {environment.load:.1f}."
    )


def write_page(result: SearchResult, output: str) -> None:
    """Put the run into the first page."""
    text = PAGE.read_text(encoding="utf-8")
    caption = f"{describe(result)} `python scripts/docs/make_picture.py` runs it again and draws this picture."
    text = CAPTION.sub(lambda found: f"{found[1]}{caption}{found[2]}", text)
    text = OUTPUT.sub(lambda found: f"{found[1]}{output.rstrip()}\n{found[2]}", text)
    PAGE.write_text(text, encoding="utf-8", newline="\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="folder", type=Path, help="the folder of a search that was run")
    folder = parser.parse_args().folder
    if folder is None:
        base = Path(tempfile.mkdtemp(prefix="winml-picture-"))
        done = subprocess.run(
            [sys.executable, "-m", "winml.modelkit", *COMMAND], cwd=base, stdout=subprocess.PIPE, text=True, check=True
        )
        folder, output = base / COMMAND[-1], done.stdout
    else:
        output = (folder.parent / "out.txt").read_text(encoding="utf-8")
    result = read(SearchResult, json.loads((folder / "autoconfig.json").read_text(encoding="utf-8")))
    PICTURE.write_text(draw(result), encoding="utf-8", newline="\n")
    write_page(result, output)
    print(f"wrote {PICTURE.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
