"""`winml cache`: lists the cache, measures it, verifies it and reduces its size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed
from winml.modelkit.core.values import key
from winml.modelkit.store.cache import GRACE_S, Cache, Collected


@dataclass(frozen=True, kw_only=True)
class CacheResult:
    """The fields of every result."""

    schema: Literal["winml/cache/1"] = "winml/cache/1"
    ok: Literal[True] = True
    folder: str


@dataclass(frozen=True, kw_only=True)
class CacheEntry:
    """A stage result."""

    key: str
    stage: str
    artifact: str
    files: Mapping[str, str]
    """Names of files and their digests."""
    bytes: int
    used_at: float


@dataclass(frozen=True, kw_only=True)
class CacheList(CacheResult):
    action: Literal["list"] = "list"
    entries: tuple[CacheEntry, ...]
    pins: Mapping[str, tuple[str, ...]]
    """Digests of pinned objects, by name."""


@dataclass(frozen=True, kw_only=True)
class CacheSize(CacheResult):
    action: Literal["size"] = "size"
    objects: int
    bytes: int
    entries: int


@dataclass(frozen=True, kw_only=True)
class CacheVerification(CacheResult):
    action: Literal["verify"] = "verify"
    objects: int
    damaged: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CacheCollection(CacheResult):
    action: Literal["gc"] = "gc"
    dry_run: bool
    removed: Collected = key(inline=True)


def list_cache() -> CacheList:
    """Every stage result, last used first, with the size of its files."""
    cache = Cache()
    sizes = {o.digest: o.bytes for o in cache.objects}
    entries = tuple(
        CacheEntry(
            key=e.key,
            stage=e.parts["stage"],
            artifact=e.artifact,
            files=e.files,
            bytes=sum(sizes.get(d, 0) for d in e.files.values()),
            used_at=e.used_at,
        )
        for e in sorted(cache.stages, key=lambda e: -e.used_at)
    )
    pins = {name: tuple(sorted(digests)) for name, digests in cache.pins().items()}
    return CacheList(folder=str(cache.root), entries=entries, pins=pins)


def measure_cache() -> CacheSize:
    """Bytes and numbers of objects and stage results."""
    cache = Cache()
    sizes = [o.bytes for o in cache.objects]
    entries = sum(1 for _ in cache.stages)
    return CacheSize(folder=str(cache.root), objects=len(sizes), bytes=sum(sizes), entries=entries)


def verify_cache() -> CacheVerification:
    """Hash every object again; damaged ones are moved aside, and raise `CheckFailed`."""
    cache = Cache()
    damaged, checked = cache.verify()
    result = CacheVerification(folder=str(cache.root), objects=checked, damaged=tuple(damaged))
    if damaged:
        raise CheckFailed(
            f"{len(damaged)} of {checked} objects were damaged and have been moved aside",
            hint=f"they are in {cache.root / 'damaged'}; the stages that made them will run again",
            result=result,
        )
    return result


def collect_garbage(
    *, max_bytes: int | None, older_than_s: float | None, grace_s: float | None, dry_run: bool
) -> CacheCollection:
    """Remove what is not needed."""
    cache = Cache()
    removed = cache.collect(
        max_bytes=max_bytes,
        older_than_s=older_than_s,
        grace_s=GRACE_S if grace_s is None else grace_s,
        dry_run=dry_run,
    )
    return CacheCollection(folder=str(cache.root), dry_run=dry_run, removed=removed)
