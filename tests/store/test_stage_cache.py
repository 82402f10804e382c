from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.store import digest
from winml.modelkit.store.cache import WORK_GRACE_S, Cache
from winml.modelkit.store.stage_cache import StageKey

KEY = StageKey(
    stage="quantize",
    stage_version=1,
    section={"mode": "static", "types": "u8s8"},
    parent=digest.of_bytes(b"parent"),
    libraries={"onnxruntime": "1.31.1"},
    calibration=digest.of_bytes(b"data"),
)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def _stored(cache: Cache, key: StageKey, content: bytes, folder: Path) -> None:
    path = folder / "model.onnx"
    path.write_bytes(content)
    cache.stages.store(key, {"model.onnx": path}, {"seconds": 1})


def test_a_stored_result_is_found_by_an_equal_key(cache: Cache, tmp_path: Path) -> None:
    assert cache.stages.find(KEY) is None
    _stored(cache, KEY, b"quantized", tmp_path)
    entry = cache.stages.find(replace(KEY, section={"types": "u8s8", "mode": "static"}))
    assert entry is not None
    assert entry.artifact == digest.of_bytes(b"quantized")
    assert entry.info == {"seconds": 1}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"section": {"mode": "static", "types": "s8s8"}}, "section.types"),
        ({"stage_version": 2}, "stage_version"),
        ({"libraries": {"onnxruntime": "1.32.0"}}, "library.onnxruntime"),
        ({"parent": digest.of_bytes(b"other")}, "parent"),
        ({"calibration": None}, "calibration"),
        ({"section": {"mode": "static"}}, "section.types"),
    ],
)
def test_a_miss_is_explained_by_the_part_that_changed(
    cache: Cache, tmp_path: Path, change: dict[str, object], part: str
) -> None:
    _stored(cache, KEY, b"x", tmp_path)
    key = replace(KEY, **change)  # type: ignore[arg-type]
    assert cache.stages.find(key) is None
    explanation = cache.stages.explain(key)
    assert not explanation.hit
    assert [c.part for c in explanation.changes] == [part]


def test_a_hit_and_an_empty_cache_are_explained(cache: Cache, tmp_path: Path) -> None:
    assert "nothing is stored for stage `quantize`" in cache.stages.explain(KEY).reason
    _stored(cache, KEY, b"x", tmp_path)
    assert cache.stages.explain(KEY).hit


def test_the_nearest_entry_explains(cache: Cache, tmp_path: Path) -> None:
    far = replace(KEY, section={"mode": "dynamic"}, libraries={"onnxruntime": "1.20"}, calibration=None)
    _stored(cache, far, b"far", tmp_path)
    _stored(cache, KEY, b"near", tmp_path)
    changes = cache.stages.explain(replace(KEY, stage_version=9)).changes
    assert [c.part for c in changes] == ["stage_version"]


def test_an_entry_that_lost_a_file_is_a_miss_and_says_why(cache: Cache, tmp_path: Path) -> None:
    _stored(cache, KEY, b"x", tmp_path)
    cache.objects.remove(digest.of_bytes(b"x"))
    assert cache.stages.explain(KEY).reason in (
        "its files were lost or damaged",
        "nothing is stored for stage `quantize`",
    )
    assert cache.stages.find(KEY) is None


def test_an_entry_nobody_can_read_is_a_miss_not_an_error(cache: Cache, tmp_path: Path) -> None:
    _stored(cache, KEY, b"x", tmp_path)
    for path in (cache.root / "stages").iterdir():
        path.write_text('{"schema": "winml/stage-entry/1"')
    assert cache.stages.find(KEY) is None


def test_a_stage_without_files_is_not_stored(cache: Cache) -> None:
    with pytest.raises(DataError, match="no files"):
        cache.stages.store(KEY, {}, {})


def test_collection_removes_what_nothing_names_and_keeps_pins(cache: Cache, tmp_path: Path) -> None:
    _stored(cache, KEY, b"named", tmp_path)
    pinned, loose = cache.objects.put_bytes(b"pinned"), cache.objects.put_bytes(b"loose")
    cache.pin("run-1", [pinned])
    assert cache.collect().objects == 0  # all of it is younger than the grace period
    preview = cache.collect(grace_s=-1, dry_run=True)
    assert (preview.objects, preview.bytes) == (1, 5)
    assert loose in cache.objects
    assert cache.collect(grace_s=-1).objects == 1
    assert loose not in cache.objects
    assert pinned in cache.objects
    assert cache.stages.find(KEY) is not None
    cache.unpin("run-1")
    assert cache.collect(grace_s=-1).objects == 1


def test_collection_by_size_drops_the_least_recently_used_first(cache: Cache, tmp_path: Path) -> None:
    import os
    import time

    keys = [replace(KEY, stage_version=n) for n in range(3)]
    for n, key in enumerate(keys):
        _stored(cache, key, bytes([n]) * 1000, tmp_path)
        path = next(p for p in (cache.root / "stages").iterdir() if key.digest[7:] in p.name)
        os.utime(path, (time.time() - 100 + n,) * 2)
    done = cache.collect(max_bytes=2000, grace_s=-1)
    assert (done.entries, done.objects, done.kept_bytes) == (1, 1, 2000)
    assert cache.stages.find(keys[0]) is None
    assert cache.stages.find(keys[2]) is not None


def test_collection_by_age(cache: Cache, tmp_path: Path) -> None:
    _stored(cache, KEY, b"x", tmp_path)
    assert cache.collect(older_than_s=1000, grace_s=-1).entries == 0
    assert cache.collect(older_than_s=-1, grace_s=-1).entries == 1


def test_a_pin_that_cannot_be_read_stops_collection(cache: Cache) -> None:
    cache.pin("good", [])
    (cache.root / "pins" / "good.json").write_text("{")
    with pytest.raises(RequestError, match="cannot be read"):
        cache.collect()
    with pytest.raises(RequestError):
        cache.pin("../evil", [])


def test_one_process_at_a_time_makes_a_result_and_old_locks_are_collected(cache: Cache) -> None:
    with cache.stages.computing(KEY):
        (lock,) = cache.stages.locks()
        with pytest.raises(Timeout):
            FileLock(lock, timeout=0).acquire()
    with FileLock(lock, timeout=0):
        pass
    assert cache.collect().temporaries == 0
    lock.touch()  # on Windows it went when the lock was released, and stays where a process was killed
    os.utime(lock, (time.time() - 2 * WORK_GRACE_S,) * 2)
    assert cache.collect().temporaries == 1
    assert not list(cache.stages.locks())
