"""Where the size of an open dimension comes from, in the order of who knows best."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import model_zoo
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.data import sizes
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.graph.sizes import INPUTS_KEY, Size
from winml.modelkit.worker.client import Worker

IMAGE = "image (float[batch,3,height,width] x) => (float[batch,3,height,width] y) { y = Relu(x) }"
TEXT = "text (int64[batch,sequence] input_ids) => (int64[batch,sequence] y) { y = Identity(input_ids) }"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return model_zoo.saved(model_zoo.text_model(IMAGE), tmp_path / "m.onnx")


def write(folder: Path, name: str, **value: object) -> None:
    (folder / name).write_text(json.dumps(value))


WORKERS: list[Worker] = []


@pytest.fixture(scope="module", autouse=True)
def worker() -> Iterator[None]:
    """One process that reads graphs for all tests."""
    with Worker() as started:
        WORKERS[:] = [started]
        yield


def found(path: Path, dims: dict[str, int] | None = None) -> dict[str, tuple[int, str]]:
    known = sizes.find(path, dims or {}, worker=WORKERS[0]).require()
    return {name: (size.size, size.source) for name, size in known.sizes.items()}


def test_a_size_that_nobody_knows_is_refused_with_the_options_to_give_it(image: Path) -> None:
    with pytest.raises(RequestError, match="dimensions `height`, `width` have no size") as caught:
        found(image)
    assert "--dim height=224 --dim width=224" in str(caught.value.hint)
    assert found(image, {"x[2]": 48, "width": 320}) == {
        "batch": (1, "batch"),
        "height": (48, "given"),
        "width": (320, "given"),
    }


def test_images_have_the_size_of_the_processor_or_of_the_config(image: Path) -> None:
    write(image.parent, "config.json", image_size=[32, 64])
    assert found(image) == {"batch": (1, "batch"), "height": (32, "config"), "width": (64, "config")}
    write(
        image.parent, "preprocessor_config.json", image_processor_type="CLIPImageProcessor", crop_size=96,
        size={"shortest_edge": 128},
    )  # fmt: skip
    assert found(image) == {"batch": (1, "batch"), "height": (96, "processor"), "width": (96, "processor")}
    assert found(image, {"width": 8})["width"] == (8, "given")


def test_images_whose_size_depends_on_the_image_have_none(image: Path) -> None:
    write(image.parent, "preprocessor_config.json", image_processor_type="DetrImageProcessor", size=800)
    with pytest.raises(RequestError, match="have no size"):
        found(image)


def test_texts_have_the_usual_length_within_what_the_config_allows(tmp_path: Path) -> None:
    path = model_zoo.saved(model_zoo.text_model(TEXT), tmp_path / "m.onnx")
    with pytest.raises(RequestError, match="`sequence` has no size"):
        found(path)
    write(tmp_path, "config.json", max_position_embeddings=64)
    assert found(path)["sequence"] == (64, "config")
    write(tmp_path, "config.json", max_position_embeddings=131072)
    assert found(path)["sequence"] == (128, "config")


def test_the_graph_and_the_metadata_of_the_file_know_sizes(tmp_path: Path) -> None:
    model = model_zoo.text_model("g (float[batch,t,s] x) => (float[batch,t,4] y) { y = MatMul(x, w) }")
    model.graph.initializer.append(numpy_helper.from_array(np.ones((7, 4), np.float32), "w"))
    model.metadata_props.add(key=INPUTS_KEY, value=json.dumps({"sizes": {"t": 12, "batch": 9}}))
    path = model_zoo.saved(model, tmp_path / "m.onnx")
    assert found(path) == {"batch": (1, "batch"), "t": (12, "metadata"), "s": (7, "graph")}


def test_another_model_that_is_compared_knows_a_size(image: Path) -> None:
    others = {name: Size(32, "other arm", "x[2] of another model") for name in ("height", "width")}
    asked = sizes.complete(image, InputSettings(batch_size=2), others)
    assert asked.dims == {"batch": 2, "height": 32, "width": 32}
    assert asked.sizes is not None
    assert asked.sizes["height"] == Size(32, "other arm", "x[2] of another model")


def test_inputs_take_the_whole_numbers_that_the_file_names(tmp_path: Path) -> None:
    model = model_zoo.text_model(TEXT)
    noted = {"sizes": {"sequence": 6}, "ranges": {"input_ids": [3, 119], "gone": [0, 1]}}
    model.metadata_props.add(key=INPUTS_KEY, value=json.dumps(noted))
    path = model_zoo.saved(model, tmp_path / "m.onnx")
    assert sizes.complete(path, InputSettings()).int_ranges == {"input_ids": (3, 119)}
    for given in ({"input_ids": (0, 1)}, {"": (5, 5)}):
        assert sizes.complete(path, InputSettings(int_ranges=given)).int_ranges == given
    data = sizes.random_data(DataSection("random"), path, given={"input_ids[0]": 2})
    assert (data.dims, data.ranges) == ({"batch": 2, "sequence": 6}, {"input_ids": (3.0, 119.0)})


def test_an_npu_gets_a_copy_with_names_for_dimensions_that_have_none(tmp_path: Path) -> None:
    model = model_zoo.text_model("g (float[batch,3,?] x) => (float[batch,3,?] y) { y = Relu(x) }")
    path = model_zoo.saved(model, tmp_path / "m.onnx")
    copies = tmp_path / "copies"
    copies.mkdir()
    assert sizes.openable(path, Target("cpu", "cpu"), copies) == path
    copy = sizes.openable(path, Target("qnn", "npu"), copies)
    dims = onnx.load(str(copy)).graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 3, "x[2]"]
