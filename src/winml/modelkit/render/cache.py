"""The text of `winml cache`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.table import table
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.store.cache_command import CacheCollection, CacheList, CacheSize, CacheVerification


def list_text(result: CacheList) -> str:
    if not result.entries:
        return f"{result.folder} has no stage results"
    rows = [("stage", "artifact", "size", "files")]
    rows += [(e.stage, e.artifact[:19], size(e.bytes), ", ".join(sorted(e.files))) for e in result.entries]
    return table(rows, right=frozenset({2}), head=True, drop=(1,))


def size_text(result: CacheSize) -> str:
    return f"{result.folder}  {size(result.bytes)} in {result.objects} objects, {result.entries} stage results"


def verification_text(result: CacheVerification) -> str:
    return f"{result.objects} objects verified, none damaged"


def collection_text(result: CacheCollection) -> str:
    removed = result.removed
    verb = "would remove" if result.dry_run else "removed"
    in_use = f"; {removed.in_use} objects in use by other programs were kept" if removed.in_use else ""
    return (
        f"{verb} {removed.objects} objects ({size(removed.bytes)}), {removed.entries} stage results, "
        f"{removed.builds} builds and {removed.temporaries} temporary files; {size(removed.kept_bytes)} kept{in_use}"
    )
