from __future__ import annotations

import json
import os
import time
from pathlib import Path

from winml.modelkit.core.build_folder import MANIFEST
from winml.modelkit.store import atomic
from winml.modelkit.store.cache import WORK_GRACE_S, Cache

WEEK_S = 7 * 24 * 3600.0


def cached_build(cache: Cache, name: str, content: bytes, *, age_s: float = 0.0) -> Path:
    """A build folder as `winml build --use-cache` leaves it."""
    stored = cache.objects.put_bytes(content)
    folder = cache.builds / name
    cache.objects.link_out(stored, folder / "model.onnx")
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps({"objects": {"model.onnx": stored}}))
    os.utime(manifest, (time.time() - age_s, time.time() - age_s))
    return folder


def test_a_build_in_the_cache_keeps_its_objects(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cached_build(cache, "a", b"model")
    assert cache.collect(grace_s=0.0).objects == 0
    assert next(cache.iter_builds()).files == {"model.onnx": next(iter(cache.objects)).digest}


def test_a_build_that_was_not_used_for_long_goes_with_its_objects(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    old, new = cached_build(cache, "old", b"old", age_s=WEEK_S), cached_build(cache, "new", b"new")
    time.sleep(0.01)
    assert cache.collect(older_than_s=WEEK_S / 2, grace_s=0.0, dry_run=True).builds == 1
    assert old.is_dir()
    done = cache.collect(older_than_s=WEEK_S / 2, grace_s=0.0)
    assert (done.builds, done.objects) == (1, 1)
    assert not old.exists()
    assert new.is_dir()


def test_the_oldest_builds_go_first_when_the_cache_is_too_large(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    old, new = cached_build(cache, "old", b"o" * 100, age_s=WEEK_S), cached_build(cache, "new", b"n" * 100)
    time.sleep(0.01)
    cache.collect(max_bytes=150, grace_s=0.0)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_build_whose_manifest_is_gone_names_nothing_and_goes_by_age(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    folder = cached_build(cache, "a", b"model")
    (folder / MANIFEST).unlink()
    assert cache.collect(older_than_s=WEEK_S).builds == 1


def test_a_folder_a_killed_stage_left_goes_after_a_day_and_not_before(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    left = tmp_path / f"{atomic.TEMPORARY}left"
    left.mkdir()
    assert cache.collect().temporaries == 0
    old = time.time() - WORK_GRACE_S - 60
    os.utime(left, (old, old))
    assert cache.collect().temporaries == 1
    assert not left.exists()
