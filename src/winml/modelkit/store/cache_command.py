"""`winml cache`: what the cache holds, how large it is, whether it is sound, and making it smaller."""

from __future__ import annotations

from typing import Any

from winml.modelkit.core.errors import CheckFailed
from winml.modelkit.store.cache import GRACE_S, Cache

SCHEMA = "winml/cache/1"


def _result(action: str, cache: Cache, **values: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, "ok": True, "action": action, "folder": str(cache.root), **values}


def listing() -> dict[str, Any]:
    """Every stage result, last used first, with the size of its files."""
    cache = Cache()
    sizes = {o.digest: o.bytes for o in cache.objects}
    entries = [
        {
            "key": e.key,
            "stage": e.parts["stage"],
            "artifact": e.artifact,
            "files": e.files,
            "bytes": sum(sizes.get(d, 0) for d in e.files.values()),
            "used_at": e.used_at,
        }
        for e in sorted(cache.stages, key=lambda e: -e.used_at)
    ]
    return _result("list", cache, entries=entries, pins={n: sorted(d) for n, d in cache.pins().items()})


def size() -> dict[str, Any]:
    """Bytes and numbers of objects and stage results."""
    cache = Cache()
    objects = list(cache.objects)
    return _result(
        "size", cache, objects=len(objects), bytes=sum(o.bytes for o in objects), entries=sum(1 for _ in cache.stages)
    )


def verify() -> dict[str, Any]:
    """Hash every object again; damaged ones are set aside, and that is a check answered with no."""
    cache = Cache()
    damaged, looked_at = cache.verify()
    result = _result("verify", cache, objects=looked_at, damaged=damaged)
    if damaged:
        raise CheckFailed(
            f"{len(damaged)} of {looked_at} objects were damaged and have been set aside",
            hint=f"they are in {cache.root / 'damaged'}; the stages that made them will run again",
            details=result,
        )
    return result


def collect(
    *, max_bytes: int | None, older_than_s: float | None, grace_s: float | None, dry_run: bool
) -> dict[str, Any]:
    """Remove what is not needed."""
    cache = Cache()
    done = cache.collect(
        max_bytes=max_bytes,
        older_than_s=older_than_s,
        grace_s=GRACE_S if grace_s is None else grace_s,
        dry_run=dry_run,
    )
    return _result("gc", cache, dry_run=dry_run, **done.to_json())
