from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit import sample
from winml.modelkit.app.support_produce import ProduceRequest, produce
from winml.modelkit.core.recipe import BuildPart


@pytest.fixture(scope="session")
def contribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A contribution that is right: the digits sample as fp16, up to L2, made by the real commands."""
    folder = tmp_path_factory.mktemp("support") / "contribution"
    request = ProduceRequest(str(sample.MODEL), str(folder), build=BuildPart(precision="fp16"))
    produce(request, lambda event: None)
    return folder
