"""The browser of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chromium import Chromium, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    """One for all: tests that need it are of one group, and run on one worker."""
    with chromium() as started:
        yield started
