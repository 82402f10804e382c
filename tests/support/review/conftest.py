from __future__ import annotations

from pathlib import Path

import pytest

import model_zoo
import support_zoo
from winml.modelkit import sample
from winml.modelkit.core.recipe import BuildPart
from winml.modelkit.support.produce import ProduceRequest, produce


@pytest.fixture(scope="session")
def contribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A contribution that is right: the digits sample as fp16, up to its accuracy, made by the real commands."""
    folder = tmp_path_factory.mktemp("support") / "contribution"
    request = ProduceRequest(
        str(sample.MODEL),
        str(folder),
        goal="L3",
        build=BuildPart(precision="fp16"),
        data=str(sample.TEST),
        task="image-classification",
        min_metric=0.9,
    )
    produce(request, lambda event: None)
    return folder


@pytest.fixture(scope="session")
def quicker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A contribution whose recipe makes a model of the same size quicker."""
    place = tmp_path_factory.mktemp("quicker")
    model = model_zoo.saved(support_zoo.side_chain(), place / "side_chain.onnx")
    folder = place / "contribution"
    produce(ProduceRequest(str(model), str(folder), build=BuildPart(dims={"n": 160})), lambda event: None)
    return folder
