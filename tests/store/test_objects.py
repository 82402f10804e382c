from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from winml.modelkit.core import patience
from winml.modelkit.core.errors import DataError, UnavailableError
from winml.modelkit.store import atomic, digest
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.objects import ObjectMissing, Objects


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(tmp_path / "cache" / "objects")


def _file(folder: Path, content: bytes, name: str = "source") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_what_is_put_in_comes_out_by_its_digest(objects: Objects, tmp_path: Path) -> None:
    name = objects.put_file(_file(tmp_path, b"content"))
    assert name == digest.of_bytes(b"content") == objects.put_bytes(b"content")
    assert objects.open_path(name).read_bytes() == b"content"
    assert name in objects
    assert [o.digest for o in objects] == [name]


def test_the_same_content_is_stored_once(objects: Objects, tmp_path: Path) -> None:
    first = objects.put_file(_file(tmp_path, b"same"))
    inode = objects.path(first).stat().st_ino
    assert objects.put_file(_file(tmp_path, b"same", "other")) == first
    assert objects.path(first).stat().st_ino == inode


def test_a_file_that_is_taken_is_moved_and_stored_once(objects: Objects, tmp_path: Path) -> None:
    source = _file(tmp_path, b"result")
    inode = source.stat().st_ino
    name = objects.take_file(source)
    assert name == digest.of_bytes(b"result")
    assert not source.exists()
    assert objects.open_path(name).read_bytes() == b"result"
    again = _file(tmp_path, b"result", "again")
    assert objects.take_file(again) == name
    assert objects.path(name).stat().st_ino == inode


def test_a_file_on_another_volume_is_stored_as_a_copy(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Objects, "_device", lambda self: -1)
    source = _file(tmp_path, b"far")
    assert objects.open_path(objects.take_file(source)).read_bytes() == b"far"
    assert source.exists()


@pytest.mark.posix("a change of a file cannot be told there: objects are hashed every time")
def test_an_object_is_not_hashed_again_when_a_link_of_ours_goes(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = objects.put_bytes(b"weights")
    link = tmp_path / "work" / "model.onnx"
    objects.link_out(name, link)
    objects.remove_link(name, link)
    assert not link.exists()
    hashed: list[object] = []
    monkeypatch.setattr(digest, "of_file", lambda path: hashed.append(path) or name)
    objects.open_path(name)
    assert hashed == []


@pytest.mark.posix("a change of a file cannot be told there: objects are hashed every time")
def test_an_object_that_was_changed_is_noticed_though_a_link_of_ours_goes(objects: Objects, tmp_path: Path) -> None:
    name = objects.put_bytes(b"weights")
    link = tmp_path / "work" / "model.onnx"
    objects.link_out(name, link)
    link.chmod(0o644)
    link.write_bytes(b"WEIGHTS")
    objects.remove_link(name, link)
    with pytest.raises(ObjectMissing):
        objects.open_path(name)


@pytest.mark.posix("files that users get are copies there")
def test_objects_are_read_only_and_linked_out(objects: Objects, tmp_path: Path) -> None:
    name = objects.put_bytes(b"weights")
    out = tmp_path / "build" / "model.onnx"
    assert objects.link_out(name, out) == "link"
    assert out.stat().st_ino == objects.path(name).stat().st_ino
    assert stat.S_IMODE(out.stat().st_mode) == 0o444


@pytest.mark.windows
def test_an_edit_of_a_file_outside_of_the_cache_reaches_nothing_else(objects: Objects, tmp_path: Path) -> None:
    name = objects.put_bytes(b"weights")
    first, second = tmp_path / "first" / "model.onnx", tmp_path / "second" / "model.onnx"
    assert [objects.link_out(name, out) for out in (first, second)] == ["copy", "copy"]
    first.write_bytes(b"edited!")
    assert objects.open_path(name).read_bytes() == second.read_bytes() == b"weights"
    first.unlink()  # nothing is read-only


def test_folders_of_the_cache_itself_have_links(objects: Objects) -> None:
    name = objects.put_bytes(b"weights")
    out = objects.path(name).parents[2] / "work" / "model.onnx"
    assert objects.link_out(name, out) == objects.link_out(name, out) == "link"
    assert out.samefile(objects.path(name))


def test_a_file_is_replaced_in_one_step(objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed at any moment leaves the old file or the new one."""
    old, new = objects.put_bytes(b"old"), objects.put_bytes(b"new")
    places = (tmp_path / "out" / "model.onnx", tmp_path / "cache" / "work" / "model.onnx")
    for out in places:
        objects.link_out(old, out)
    rename = os.replace
    moved: list[Path] = []

    def record(source: Path, destination: Path) -> None:
        moved.append(Path(source))
        rename(source, destination)

    monkeypatch.setattr(os, "replace", record)
    for out in places:
        objects.link_out(new, out)
        assert out.read_bytes() == b"new"
    assert moved
    assert not set(moved) & set(places)


def test_linking_replaces_a_file_by_rename_and_never_writes_into_it(objects: Objects, tmp_path: Path) -> None:
    old, new = objects.put_bytes(b"old"), objects.put_bytes(b"new")
    out = tmp_path / "model.onnx"
    objects.link_out(old, out)
    objects.link_out(new, out)
    assert out.read_bytes() == b"new"
    assert objects.open_path(old).read_bytes() == b"old"


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EMLINK, errno.EPERM])
def test_a_copy_is_made_where_links_are_impossible(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    name = objects.put_bytes(b"weights")

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    out = tmp_path / "model.onnx"
    assert objects.link_out(name, out) == "copy"
    assert out.read_bytes() == b"weights"
    assert out.stat().st_ino != objects.path(name).stat().st_ino


def test_a_link_across_volumes_becomes_a_copy(objects: Objects, tmp_path: Path) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second volume here")
    name = objects.put_bytes(b"weights")
    out = shared / f"winml-test-{os.getpid()}"
    try:
        assert objects.link_out(name, out) == "copy"
        assert out.read_bytes() == b"weights"
    finally:
        out.unlink(missing_ok=True)


def test_a_damaged_object_is_noticed_set_aside_and_missing(objects: Objects) -> None:
    name = objects.put_bytes(b"weights")
    path = objects.path(name)
    path.chmod(0o644)
    path.write_bytes(b"WEIGHTS")
    with pytest.raises(ObjectMissing):
        objects.open_path(name)
    assert not path.exists()
    assert [p.read_bytes() for p in (path.parents[2] / "damaged").iterdir()] == [b"WEIGHTS"]
    assert objects.put_bytes(b"weights") == name
    assert objects.open_path(name).read_bytes() == b"weights"


def test_damage_that_keeps_size_and_time_is_never_delivered(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    name = cache.objects.put_bytes(b"weights")
    path = cache.objects.path(name)
    before = path.stat()
    path.chmod(0o644)
    with path.open("r+b") as stream:
        stream.write(b"W")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ObjectMissing):
        cache.objects.open_path(name)


@pytest.mark.posix("a change of a file cannot be told there: objects are hashed every time")
def test_reading_hashes_an_object_once(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    name = objects.put_bytes(b"weights")
    hashed: list[object] = []
    monkeypatch.setattr(digest, "of_file", lambda path: hashed.append(path) or name)
    again = Objects(objects.path(name).parents[1])
    again.open_path(name)
    assert hashed == []
    (objects.path(name).parents[2] / "verified" / name[7:9] / name[9:]).write_text("0 0 0")
    again.open_path(name)
    again.open_path(name)
    assert len(hashed) == 1


def test_names_that_are_no_digests_never_become_paths(objects: Objects) -> None:
    for name in ("../../etc/passwd", "sha256:..", "", "sha256:" + "G" * 64):
        with pytest.raises(DataError):
            objects.path(name)


def test_an_object_that_is_not_there_is_missing(objects: Objects, tmp_path: Path) -> None:
    with pytest.raises(ObjectMissing):
        objects.link_out(digest.of_bytes(b"nothing"), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_an_object_that_somebody_reads_can_be_stored_and_linked_again(objects: Objects, tmp_path: Path) -> None:
    name = objects.put_bytes(b"weights")
    other = objects.put_bytes(b"other")
    with objects.path(name).open("rb"):
        assert objects.put_file(_file(tmp_path, b"weights")) == name
        assert objects.link_out(name, tmp_path / "again.onnx") in ("link", "copy")
        objects.link_out(other, tmp_path / "replaced.onnx")
        objects.link_out(name, tmp_path / "replaced.onnx")
    assert (tmp_path / "replaced.onnx").read_bytes() == b"weights"
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(atomic.TEMPORARY)]


def test_a_file_is_replaced_when_its_reader_has_finished(tmp_path: Path) -> None:
    path = _file(tmp_path, b"old")
    reader = path.open("rb")
    closing = threading.Timer(0.2, reader.close)
    closing.start()
    atomic.write_bytes(path, b"new")
    closing.join()
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.windows
def test_a_file_that_stays_open_is_an_error_of_ours_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_PATIENCE_S", 0.1)
    path = _file(tmp_path, b"old")
    with path.open("rb"), pytest.raises(UnavailableError, match="source"):
        atomic.write_bytes(path, b"new")
    assert path.read_bytes() == b"old"


@pytest.mark.windows
def test_a_collection_skips_objects_that_are_open_and_counts_them(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    held, free = cache.objects.put_bytes(b"held"), cache.objects.put_bytes(b"free")
    with cache.objects.path(held).open("rb"):
        found = cache.collect(grace_s=-1)
    assert (found.objects, found.bytes, found.in_use, found.kept_bytes) == (1, 4, 1, 4)
    assert held in cache.objects
    assert free not in cache.objects
    assert cache.collect(grace_s=-1).objects == 1


def test_many_threads_may_store_the_same_content_at_once(objects: Objects, tmp_path: Path) -> None:
    source = _file(tmp_path, os.urandom(1 << 20))
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(objects.put_file(source))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names) == 8
    assert len(set(names)) == 1
    assert digest.of_file(objects.path(names[0])) == names[0]


def test_two_processes_may_write_the_same_objects_at_once(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib, hashlib\n"
        "from winml.modelkit.store.objects import Objects\n"
        "objects = Objects(pathlib.Path(sys.argv[1]))\n"
        "for i in range(60):\n"
        "    name = objects.put_bytes(hashlib.sha256(str(i).encode()).digest() * 4000)\n"
        "    objects.link_out(name, pathlib.Path(sys.argv[2]) / str(i))\n"
    )
    folder = tmp_path / "objects"
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(folder), str(tmp_path / f"out{n}")]) for n in range(2)
    ]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    stored = list(Objects(folder))
    assert len(stored) == 60
    assert all(digest.of_file(o.path) == o.digest for o in stored)


@pytest.mark.skipif(sys.platform == "win32", reason="an object that is there is not replaced on Windows")
def test_an_object_that_is_replaced_at_that_moment_is_linked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = Objects(tmp_path / "objects")
    name = objects.put_bytes(b"content")
    real, refused = os.link, [3]

    def link(source: Path, destination: Path) -> None:
        if refused[0]:
            refused[0] -= 1
            raise FileNotFoundError(2, "the file lost its name", str(source))
        real(source, destination)

    monkeypatch.setattr(os, "link", link)
    assert objects.link_out(name, tmp_path / "out" / "model") == "link"
    assert (tmp_path / "out" / "model").read_bytes() == b"content"


@pytest.mark.posix("a file there has links by other means")
def test_a_file_that_has_another_name_is_not_taken_away(objects: Objects, tmp_path: Path) -> None:
    source = _file(tmp_path, b"of a user")
    link = tmp_path / "link"
    link.hardlink_to(source)
    name = objects.take_file(link)
    assert source.stat().st_mode & 0o200
    assert objects.path(name).stat().st_ino != source.stat().st_ino
