"""A folder of parts that is compiled: its parts as models, and a folder of their compiled forms that runs like it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from winml.modelkit.building.compile.result import CompiledModel, FailedModel
from winml.modelkit.building.export.folder import POOLING, ModelFolder
from winml.modelkit.building.pipeline.folder import write_json
from winml.modelkit.core.build_folder import ANALYSIS, CONFIG, EXPORT, MANIFEST, PARTS, PartEntry, PartsFile, load_parts
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.target import Target
from winml.modelkit.store import atomic

_OF_BUILD = (CONFIG, MANIFEST, ANALYSIS, EXPORT, PARTS, POOLING)


def part_folders(model: str) -> list[str]:
    """The folders of the parts of a composite model; any other model as it is."""
    folder = Path(model)
    if not (folder / PARTS).is_file():
        return [model]
    return [str(folder / entry.folder) for entry in load_parts(folder).parts.values()]


@dataclass(frozen=True)
class CompositeSource:
    """The composite model that was named, when it was the only one."""

    folder: Path
    source: PartsFile

    @classmethod
    def find(cls, models: Sequence[str]) -> CompositeSource | None:
        folder = Path(models[0])
        return cls(folder, load_parts(folder)) if len(models) == 1 and (folder / PARTS).is_file() else None

    @property
    def file_names(self) -> tuple[str, ...]:
        """What is written beside the compiled parts."""
        return (PARTS, *self._companions())

    def describe(self, rows: Sequence[CompiledModel | FailedModel], target: Target, folder: Path) -> None:
        """Write what a program needs to run the compiled parts together; nothing when one of them is missing."""
        atomic.remove(folder / PARTS)
        made = [row for row in rows if isinstance(row, CompiledModel)]
        if len(made) < len(rows):
            return
        for name, path in self._companions().items():
            atomic.write_bytes(folder / name, path.read_bytes())
        parts = {
            part: PartEntry(
                folder=".",
                file=row.output,
                digest=row.compiled.facts.file.digest,
                sizes=entry.sizes,
                ranges=entry.ranges,
            )
            for (part, entry), row in zip(self.source.parts.items(), made, strict=True)
        }
        write_json(folder / PARTS, PartsFile(model=self.source.model, target=str(target), parts=parts))

    def _companions(self) -> dict[str, Path]:
        """The config and the tokenizer of the model, which lie with each of its parts."""
        last = self.folder / list(self.source.parts.values())[-1].folder
        found = ModelFolder(last).processor_files() if last.is_dir() else {}
        # A link could name any file of this machine.
        return {name: path for name, path in found.items() if name not in _OF_BUILD and not path.is_symlink()}
