"""A workspace per test, and the context a worker would hand to an operation."""

from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit.building.events import PassStarted
from winml.modelkit.building.optimize.apply import Runner
from winml.modelkit.building.optimize.workspace import Workspace
from winml.modelkit.core.events import Event


class Events:
    """Keeps what an operation tells its caller."""

    def __init__(self) -> None:
        self.passes: list[str] = []

    def tell(self, event: Event) -> None:
        if isinstance(event, PassStarted):
            self.passes.append(event.name)


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return Workspace(folder)


@pytest.fixture
def runner(workspace: Workspace) -> Runner:
    return Runner(workspace)
