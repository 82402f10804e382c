"""Calibration and evaluation data: one way in, whatever the data is stored as."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path

from winml.modelkit.core.config import DEFAULT, HUB, RANDOM, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, UnavailableError, of_system
from winml.modelkit.core.suggest import near_path
from winml.modelkit.data import coco, folders, npz, retrieval, series, synthetic, tables
from winml.modelkit.data.samples import Form, Sample, SampleRequest, SampleSource
from winml.modelkit.graph.inputs import Input
from winml.modelkit.store import digest

__all__ = ["Dataset", "Sample", "open_dataset"]

FOLDER = "folder"
READERS: dict[str, Callable[[SampleRequest], SampleSource]] = {
    RANDOM: synthetic.read,
    FOLDER: folders.read,
    ".npz": npz.read,
    ".csv": tables.read,
    ".tsv": tables.read,
    ".jsonl": tables.read,
    ".jsonl.gz": tables.read,
    ".parquet": tables.read,
    ".txt": tables.read,
    ".json": coco.read,
}
"""How samples are found in each kind of source; a file's kind is its ending."""
OWN_READERS: dict[tuple[Form, str], Callable[[SampleRequest], SampleSource]] = {
    ("retrieval", FOLDER): retrieval.read,
    ("retrieval", ".jsonl"): retrieval.read,
    ("series", ".csv"): series.read,
    ("series", ".tsv"): series.read,
}
"""Kinds of source that mean something else in a form."""


@dataclass(frozen=True)
class Dataset:
    """Samples that are made one at a time, each time they are iterated."""

    source: str
    digest: str
    """Of everything the samples are made of: the data, what was chosen of it, the tokenizer or image processor."""
    columns: dict[str, str]
    notes: tuple[str, ...]
    _count: int
    _samples: Callable[[], Iterator[Sample]] = field(repr=False)
    unjudged: int = 0
    """Further samples that come last and have no score of their own."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Sample]:
        with _readable():
            yield from self._samples()


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Turn errors of the system into errors about the machine, not the data."""
    try:
        yield
    except OSError as error:
        found = of_system(error)
        why = error.strerror or "the system refused"
        raise found or UnavailableError(f"cannot use `{error.filename}`: {why}") from error


COMPANIONS: dict[Form, tuple[str, ...]] = {"retrieval": (retrieval.QUERIES, retrieval.QRELS)}
"""Files that are fetched with one of the hub, from the same repository."""


def _path(source: str, form: Form) -> Path:
    """Where data lies on this machine; a file of the hub is fetched."""
    if source.startswith(HUB):
        # Files of this machine need neither the module nor what it asks.
        from winml.modelkit.data import hub

        named, _, revision = source.partition("@")
        at = f"@{revision}" if revision else ""
        for name in COMPANIONS.get(form, ()):
            hub.data_file(f"{'/'.join(named.split('/')[:2])}/{name}{at}")
        return hub.data_file(source)
    if source == DEFAULT:
        raise DataError(
            "`default` is the data of a task, which is evaluated; nothing else has it",
            hint="name a file, or `random`; `winml eval --data default` names the file that it takes",
        )
    return Path(source)


def _kind(source: str, path: Path) -> str:
    if source == RANDOM:
        return RANDOM
    if path.is_dir():
        return FOLDER
    ending = tables.ending_of(path)
    if ending not in READERS:
        known = ", ".join(name for name in READERS if name.startswith("."))
        raise DataError(
            f"`{source}` is not supported as data",
            hint=f"supported: a folder of images or recordings, {known}, and such a file on the hub as "
            "`hf:ORG/NAME/FILE`",
        )
    if not path.is_file():
        raise DataError(f"data not found: `{source}`", hint=near_path(path))
    return ending


def list_columns(section: DataSection) -> tuple[str, ...]:
    """Names of the arrays or columns that data has; none for data without names."""
    path = _path(section.source, "joined")
    kind = _kind(section.source, path)
    with _readable():
        if kind == ".npz":
            return npz.list_arrays(path)
        return tables.list_columns(path) if READERS[kind] is tables.read and kind != ".txt" else ()


def _digest(section: DataSection, kind: str, found: SampleSource) -> str:
    return digest.of_json(
        {
            "kind": kind,
            "content": found.content,
            "columns": found.columns,
            "count": found.count,
            "seed": section.seed,
            "length": section.length,
        }
    )


def open_dataset(
    section: DataSection,
    inputs: Sequence[Input],
    *,
    model_folder: Path | None,
    labels: bool | None,
    form: Form = "joined",
    steps: bool = False,
) -> Dataset:
    """The data of a section for a model with these inputs; every sample fits it with batch dimension 1.

    With `labels` every sample has one, as the data has it; None takes one where the data has it. `model_folder` is
    where the tokenizer or image processor is unless the section names another folder. With `steps` a sample is a
    sequence of ready inputs.
    """
    path = _path(section.source, form)
    kind = _kind(section.source, path)
    folder = Path(section.processor) if section.processor is not None else model_folder
    with _readable():
        read = OWN_READERS.get((form, kind), READERS[kind])
        found = read(SampleRequest(section, path, inputs, folder, labels, form, steps))
    if not found.count:
        raise DataError(f"`{section.source}` has no samples")
    content = _digest(section, kind, found)
    if section.digest is not None and section.digest != content:
        raise DataError(
            f"`{section.source}` is not the data of the config: its digest is {content}, the config has "
            f"{section.digest}",
            hint="restore the data, or create the config again with `winml config`",
        )
    return Dataset(section.source, content, found.columns, found.notes, found.count, found.samples, found.unjudged)
