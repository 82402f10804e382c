"""`winml cache` on a real cache folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from program import Done, failed, valid
from program import winml as run

from winml.modelkit.store import digest
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import StageKey


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    made = Cache(tmp_path / "cache ü")
    model = tmp_path / "model.onnx"
    model.write_bytes(b"m" * 5000)
    made.stages.store(StageKey("optimize", 1, {"level": "all"}, None), {"model.onnx": model}, {})
    made.objects.put_bytes(b"loose")
    return made


def winml(cache: Cache, *args: str) -> Done:
    return run("cache", *args, env={**os.environ, "WINML_CACHE": str(cache.root)})


def test_list_and_size_tell_what_is_there(cache: Cache) -> None:
    listed = valid(winml(cache, "list", "--json").stdout)
    assert [(e["stage"], e["bytes"]) for e in listed["entries"]] == [("optimize", 5000)]
    sized = valid(winml(cache, "size", "--json").stdout)
    assert (sized["objects"], sized["bytes"], sized["entries"]) == (2, 5005, 1)
    assert "optimize" in winml(cache, "list").stdout


def test_gc_previews_and_then_removes(cache: Cache) -> None:
    preview = valid(winml(cache, "gc", "--grace", "0", "--dry-run", "--json").stdout)
    assert (preview["objects"], preview["bytes"], preview["entries"]) == (1, 5, 0)
    assert valid(winml(cache, "gc", "--grace", "0", "--max-size", "1k", "--json").stdout)["objects"] == 2
    assert valid(winml(cache, "size", "--json").stdout)["objects"] == 0


def test_gc_keeps_what_is_young(cache: Cache) -> None:
    assert valid(winml(cache, "gc", "--json").stdout)["objects"] == 0


def test_verify_finds_damage_and_answers_no(cache: Cache) -> None:
    assert winml(cache, "verify").returncode == 0
    path = cache.objects.path(digest.of_bytes(b"loose"))
    path.chmod(0o644)
    path.write_bytes(b"LOOSE")
    result = winml(cache, "verify", "--json")
    assert "1 of 2 objects were damaged" in failed(result, 5)
    assert valid(result.stdout)["damaged"] == [digest.of_bytes(b"loose")]
    assert winml(cache, "verify").returncode == 0


@pytest.mark.parametrize(
    "words", [["--max-size", "10Q"], ["--older-than", "soon"], ["--grace", "-1"], ["--max-size", ""]]
)
def test_malformed_limits_are_wrong_requests(cache: Cache, words: list[str]) -> None:
    failed(winml(cache, "gc", *words), 2)


def test_an_empty_cache_is_no_error(tmp_path: Path) -> None:
    empty = Cache(tmp_path / "none")
    assert winml(empty, "size").returncode == winml(empty, "gc").returncode == winml(empty, "list").returncode == 0
