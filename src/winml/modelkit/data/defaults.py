"""THE table of default data: a data set of the hub per task, where one is there as plain files.

A revision is a commit where one is known for certain; `main` is resolved when it is fetched, and the result names the
commit. Digests are of the files; data that is not what it was is an error.
"""

from __future__ import annotations

from dataclasses import field, replace

from winml.modelkit.core.config import HUB, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data import hub
from winml.modelkit.store import digest

MAIN = "main"


@dataclass(frozen=True)
class DefaultData:
    """A data set of the hub."""

    repo: str
    files: dict[str, str | None]
    """The file that is read, then those it needs beside it; with the SHA-256 of each where that is known."""
    revision: str
    licence: str
    columns: dict[str, str] = field(default_factory=dict)


DEFAULTS: dict[str, DefaultData] = {
    "text-classification": DefaultData(
        "SetFit/sst2",
        {"dev.jsonl": "573c3ed18d96aa0a79a6e5980a544b80543317a319f18bd4f1660c16b2f6b939"},
        MAIN,
        "see its page on the hub",
        {"text": "text", "label": "label"},
    ),
    "zero-shot-classification": DefaultData(
        "SetFit/ag_news",
        {"test.jsonl": "68290dee715edcb5a28ff1f3fc933ea7649fb0f01263af94411cfec255c55284"},
        "ca5ba619eb034211db5f70932b6702efd21e7c73",
        "see its page on the hub",
        {"text": "text", "label": "label_text"},
    ),
    "retrieval": DefaultData(
        "mteb/scifact",
        {
            "corpus.jsonl": "f0d32db0d156b526d75921ed7a76f2cb912902631c87248c5c97c617bad0b60c",
            "queries.jsonl": "9db7df096f7414435d52bafcbacf814c30cea50eb565c1e8fa6d11440759bba8",
            "qrels/test.tsv": "0864bb985e0ca2367ba217977e72004d549054b2b06666ed9d4825ac7c21284c",
        },
        "cf10ab6856b15b0e670ef8ae5dae4e266c12d035",
        "CC BY 4.0 and ODC-By 1.0",
    ),
    "fill-mask": DefaultData(
        "roneneldan/TinyStories", {"TinyStories-valid.txt": None}, MAIN, "see its page on the hub", {"text": "text"}
    ),
    "time-series-forecasting": DefaultData(
        "pkr7098/time-series-forecasting-datasets",
        {"ETTh1.csv": None},
        MAIN,
        "see its page on the hub",
    ),
}


def taken_default(section: DataSection, task: str, source: str) -> DataSection:
    """The section with the default data that a run of the task took: the same commit, whatever `main` is by now."""
    return replace(section, source=source, columns={**DEFAULTS[task].columns, **section.columns})


def find_default(section: DataSection, task: str) -> tuple[DataSection, str]:
    """The section with the default data of a task in place of its name, fetched and checked, and a note."""
    row = DEFAULTS.get(task)
    if row is None:
        raise DataError(
            f"there is no default data for task `{task}`",
            hint=f"there is for {', '.join(DEFAULTS)}; docs/data.md shows how files for the others look",
        )
    first, commit = next(iter(row.files)), row.revision
    for name, known in row.files.items():
        path = hub.data_file(f"{HUB}{row.repo}/{name}@{row.revision}")
        commit = hub.commit_of(path) or row.revision
        if known is not None and digest.of_file(path).removeprefix("sha256:") != known:
            raise DataError(
                f"`{name}` of the data set `{row.repo}` is not the file that it was: its SHA-256 is not {known}",
                hint=f"look at it and name it yourself: `--data {HUB}{row.repo}/{first}`",
            )
    source = f"{HUB}{row.repo}/{first}@{commit}"
    note = f"the default data of task `{task}` is {source}; licence: {row.licence}"
    return taken_default(section, task, source), note
