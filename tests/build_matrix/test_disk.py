from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from winml.modelkit.build_matrix import disk as matrix_disk
from winml.modelkit.build_matrix.disk import Disk, Pins, bytes_in
from winml.modelkit.build_matrix.models import MatrixModel
from winml.modelkit.build_matrix.plan import COMBOS, Cell, plan
from winml.modelkit.build_matrix.state import Build, CellState
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import StageKey

CELLS = plan([MatrixModel("m", "m"), MatrixModel("n", "n")], COMBOS[:2], run_stamp="s")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def _build(*objects: str, shared: tuple[str, ...] = ()) -> Build:
    return Build("ok", "complete", 1.0, "t", objects=objects, shared=shared)


def _stage(cache: Cache, folder: Path, name: str, size: int = 1000) -> str:
    """A stage result of so many bytes that was last used an hour ago."""
    path = folder / name
    path.write_bytes(name.encode() * size)
    entry = cache.stages.store(StageKey("optimize", 1, {"name": name}, None), {"m": path}, {})
    digest = entry.files["m"]
    os.utime(cache.objects.path(digest), (time.time() - 3600, time.time() - 3600))
    return digest


def test_a_file_with_several_names_counts_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one").write_bytes(b"x" * 100)
    os.link(tmp_path / "a/one", tmp_path / "a/two")
    (tmp_path / "b").mkdir()
    os.link(tmp_path / "a/one", tmp_path / "b/three")
    (tmp_path / "b/other").write_bytes(b"y" * 10)
    assert bytes_in(tmp_path / "a", tmp_path / "b", tmp_path / "gone") == 110


def test_a_cells_own_objects_are_pinned_until_it_is_published(tmp_path: Path, cache: Cache) -> None:
    own, common = (_stage(cache, tmp_path, name) for name in ("own", "common"))
    pins = Pins(cache, CELLS, CELLS, {})
    pins.add_build(CELLS[0], _build(own, common, shared=(common,)), keep=True)
    assert frozenset().union(*cache.pins().values()) == {own, common}
    pins.release(CELLS[0])
    assert frozenset().union(*cache.pins().values()) == {common}  # the other target of the model is pending
    pins.add_build(CELLS[1], _build(common, shared=(common,)), keep=False)
    assert frozenset().union(*cache.pins().values()) == frozenset()


def test_a_failed_build_lets_go_of_what_its_model_shared(tmp_path: Path, cache: Cache) -> None:
    common = _stage(cache, tmp_path, "common")
    pins = Pins(cache, CELLS, CELLS, {})
    pins.add_build(CELLS[0], _build(common, shared=(common,)), keep=False)
    pins.add_build(CELLS[1], Build("failed", "quantize", 1.0, "t"), keep=True)
    assert not any(cache.pins().values())


def test_going_on_takes_over_the_pins_of_the_run_before(tmp_path: Path, cache: Cache) -> None:
    own, common = (_stage(cache, tmp_path, name) for name in ("own", "common"))
    build = _build(own, common, shared=(common,))
    Pins(cache, CELLS, CELLS, {}).add_build(CELLS[0], build, keep=True)
    pending: tuple[Cell, ...] = CELLS[1:]
    pins = Pins(cache, CELLS, pending, {CELLS[0].version: CellState(build)})
    assert frozenset().union(*cache.pins().values()) == {own, common}
    pins.release(CELLS[0])
    Pins(cache, CELLS, (), {CELLS[0].version: CellState(build)})
    assert not any(cache.pins().values())


def test_what_is_not_pinned_goes_when_room_is_needed_and_what_is_stays(tmp_path: Path, cache: Cache) -> None:
    pinned, free = (_stage(cache, tmp_path, name) for name in ("pinned", "free"))
    cache.pin("p", [pinned])
    used = bytes_in(cache.root)
    disk = Disk(cache, tmp_path / "out", limit=used - 1, grace_s=0.1)
    assert disk.is_full()
    assert not disk.has_room(1)
    disk.free()
    assert pinned in cache.objects
    assert free not in cache.objects
    assert disk.has_room(1)


def test_what_another_command_has_just_used_stays_for_now(tmp_path: Path, cache: Cache) -> None:
    busy = _stage(cache, tmp_path, "busy")
    path = cache.objects.path(busy)
    os.utime(path, (time.time() + 30, path.stat().st_mtime))  # also when its clock is ahead of ours
    disk = Disk(cache, tmp_path / "out", limit=1, grace_s=0.1)
    disk.free()
    assert busy in cache.objects
    assert disk.is_full()


def test_without_a_limit_there_is_always_room(tmp_path: Path, cache: Cache) -> None:
    disk = Disk(cache, tmp_path / "out", limit=None, guess=1 << 60)
    disk.free()
    assert disk.has_room(9)
    assert not disk.is_full()


def test_the_disk_is_measured_when_the_limit_may_be_near_and_not_for_every_cell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Cache
) -> None:
    measured: list[int] = []
    monkeypatch.setattr(matrix_disk, "bytes_in", lambda *folders: measured.append(bytes_in(*folders)) or measured[-1])
    disk = Disk(cache, tmp_path, limit=1000, guess=10)
    for _ in range(100):
        assert disk.has_room(1)
        disk.add_build(replace(_build(), bytes=10))
    assert measured == [0]
    assert disk.has_room(1)  # all of them may be there still, so it is looked: they have been published
    (tmp_path / "log").write_bytes(b"x" * 995)
    for _ in range(100):
        disk.add_build(replace(_build(), bytes=10))
    assert not disk.has_room(1)
    assert measured == [0, 0, 995]
