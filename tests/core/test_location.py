"""Folders of the user, and users who have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.location import cache_root, expand, knowledge_root
from winml.modelkit.feed.credentials import credential_files


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without HOME whose user has no entry."""

    def expanduser(path: Path) -> Path:
        if str(path).startswith("~"):
            raise RuntimeError("Could not determine home directory.")
        return path

    monkeypatch.setattr(Path, "expanduser", expanduser)
    for name in ("WINML_CACHE", "WINML_KNOWLEDGE", "XDG_CACHE_HOME", "XDG_DATA_HOME", "LOCALAPPDATA", "DOCKER_CONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("nobody")
def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnavailableError) as cache:
        cache_root()
    assert "WINML_CACHE" in (cache.value.hint or "")
    with pytest.raises(UnavailableError) as knowledge:
        knowledge_root()
    assert "WINML_KNOWLEDGE" in (knowledge.value.hint or "")
    monkeypatch.setenv("WINML_CACHE", str(Path("/c").absolute()))
    assert cache_root() == Path("/c").absolute()


@pytest.mark.usefixtures("nobody")
def test_a_user_without_a_home_has_not_logged_in_there() -> None:
    assert not [path for path in credential_files() if ".docker" in path.parts]


@pytest.mark.usefixtures("nobody")
def test_a_path_of_a_user_who_is_not_there_is_a_wrong_request() -> None:
    with pytest.raises(RequestError, match="is not the folder of a known user"):
        expand("~nobody-of-this-name/models")
