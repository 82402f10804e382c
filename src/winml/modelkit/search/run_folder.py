"""The folder of a search: the journal, what is derived from it, measurements, reports and the champion."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from winml.modelkit.building.pipeline.folder import write_json
from winml.modelkit.core.build_folder import MODEL, source_name
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.measurement import Measurement
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.values import read, to_json
from winml.modelkit.findings import draft as kb_draft
from winml.modelkit.graph.description import GraphFacts
from winml.modelkit.knowledge import rules
from winml.modelkit.search.records import JOURNAL, StudyRecord, read_records, replay
from winml.modelkit.search.result import SearchResult, SearchSession, TableRow, TrialResult, result_of_journal
from winml.modelkit.search.strategy import State
from winml.modelkit.search.trial import EXACT
from winml.modelkit.store import atomic, journal

RESULTS = "results.tsv"
SESSION = "session.json"
RESULT = "autoconfig.json"
REPORTS = ("report.md", "report.html")


def holds_trial(folder: Path) -> bool:
    """Whether the journal in a folder has a trial."""
    return any(record.get("kind") == "trial" for record in journal.read(folder / JOURNAL).records)


def read_result(folder: Path) -> SearchResult:
    """The result of a search that has ended, from its folder; that of a newer version may have more fields."""
    path = folder / RESULT
    if not path.is_file():
        raise RequestError(f"the search in `{folder}` has not ended", hint="go on with it: `--resume`")
    return read(SearchResult, read_object(path), f"`{path}`", strict=False, error=DataError)


def read_search(folder: Path) -> SearchResult:
    """The result of a search, or its result so far from the journal while it has not ended."""
    study, state = read_state(folder)
    path = folder / RESULT
    if path.is_file():
        ended = read_result(folder)
        # The file of an interrupted search that was resumed is older than its journal.
        if ended.finished or study is None or len(ended.trials) >= len(state.trials):
            return ended
    if study is None:
        raise RequestError(f"`{folder}` holds no search", hint="give the folder of a `winml autoconfig`")
    return result_of_journal(study, state, folder)


def read_state(folder: Path) -> tuple[StudyRecord | None, State]:
    """What the journal of a search says; nothing where there is no journal."""
    path = folder / JOURNAL
    records = read_records(journal.read(path).records, str(path))
    if not records:
        return None, State()
    if not isinstance(records[0], StudyRecord):
        raise RequestError(f"`{path}` is not the journal of a search")
    return records[0], replay(records)


def read_rounds(folder: Path) -> dict[str, tuple[float, ...]]:
    """By trial, how many times as fast as the baseline it was in each round of the race; from the journal."""
    _, state = read_state(folder)
    timed = [trial for trial in state.trials if trial.series is not None and trial.series.metric != EXACT]
    return {trial.id: tuple(map(math.exp, trial.series.deciding)) for trial in timed if trial.series is not None}


class SearchFolder:
    """Where a search writes; the journal is authoritative, everything else is derived from it."""

    def __init__(self, path: Path, *, resume: bool, overwrite: bool = False) -> None:
        if path.is_file():
            raise RequestError(f"output `{path}` is a file", hint="name a folder")
        if not path.parent.is_dir():
            raise RequestError(f"output folder's parent not found: `{path.parent}`", hint=near_path(path.parent))
        begun = (path / JOURNAL).is_file()
        if not begun and path.is_dir() and any(path.iterdir()):
            raise RequestError(f"output folder `{path}` holds other files", hint="name a new folder")
        if resume and not begun:
            raise RequestError(f"`{path}` holds no search to resume", hint="omit `--resume` to start one")
        if begun and not resume and not overwrite and holds_trial(path):
            raise RequestError(
                f"`{path}` holds a search",
                hint="continue it with `--resume`, replace it with `--overwrite`, or name a new folder with `-o`",
            )
        self.path = path
        self.champion = path / "champion"
        self._begun = begun

    @property
    def holds_trial(self) -> bool:
        """Whether there is anything to resume: a search that ended before its first trial left nothing."""
        return self._begun and holds_trial(self.path)

    def clear(self) -> None:
        """Remove the files that an earlier search derived from its journal; other files stay."""
        for name in (RESULTS, SESSION, RESULT, *REPORTS, kb_draft.TRIALS):
            atomic.remove(self.path / name)
        for name in ("measurements", "findings", self.champion.name):
            shutil.rmtree(self.path / name, ignore_errors=True)

    def keep(self, name: str, measurement: Measurement) -> None:
        """Store the samples of some rounds."""
        write_json(self.path / "measurements" / f"{name}.json", to_json(measurement))

    def derive(self, rows: Iterable[TableRow], session: SearchSession) -> None:
        """Write the table of trials and the state of the search."""
        head = "\t".join(one.name for one in fields(TableRow))
        lines = [head, *("\t".join(map(_cell, astuple(row))) for row in rows)]
        atomic.write_bytes(self.path / RESULTS, ("\n".join(lines) + "\n").encode())
        write_json(self.path / SESSION, to_json(session))

    def report(self, result: SearchResult) -> None:
        """Write the result and both reports."""
        from winml.modelkit.render.pages.autoconfig import autoconfig_page
        from winml.modelkit.render.pages.html import page_html
        from winml.modelkit.render.pages.markdown import page_markdown

        write_json(self.path / RESULT, to_json(result))
        page = autoconfig_page(result, read_rounds(self.path))
        atomic.write_bytes(self.path / "report.md", page_markdown(page).encode())
        atomic.write_bytes(self.path / "report.html", page_html(page).encode())

    def draft_findings(self, result: SearchResult, facts: GraphFacts) -> tuple[str, ...]:
        """Write every large kept gain as a draft finding, with the model's family and graph; returns their ids."""
        timed = [] if result.objective != "latency" else result.trials
        numbers = rules.list_facts(facts)
        lines = [_draft_line(result, trial, self.path, numbers) for trial in timed]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines if line is not None)
        atomic.write_bytes(self.path / kb_draft.TRIALS, text.encode())
        found, _ = kb_draft.draft_findings(self.path)
        for finding in found:
            write_json(self.path / "findings" / f"{finding.id}.json", to_json(finding))
        return tuple(finding.id for finding in found)


def _name_model(model: str) -> str:
    """The name of the model; a build folder calls every model the same, so that its source names it."""
    path = Path(model)
    named = source_name(path.parent) if path.name == MODEL else None
    return named or path.name


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text.replace("\t", " ").replace("\n", " ")


def _draft_line(
    result: SearchResult, trial: TrialResult, folder: Path, facts: Mapping[str, float]
) -> dict[str, Any] | None:
    """A trial as `winml kb draft` reads it; its samples are those of the confirmation where there are some."""
    if trial.verdict is None or trial.outcome != "measured":
        return None
    confirmed = trial.confirmation
    kept = None if confirmed is None else folder / "measurements" / f"{confirmed.measurement}.json"
    measurement = read_object(kept) if kept is not None and kept.is_file() else None
    return {
        "hypothesis": f"{trial.id} ({trial.label})",
        "target": trial.target,
        "model": _name_model(result.model),
        "model_type": None if result.family is None else result.family.known,
        "facts": facts,
        "changes": trial.changes,
        "verdict": to_json(trial.deciding_verdict),
        "measurement": measurement,
    }
