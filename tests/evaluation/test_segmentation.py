"""Areas of classes at the size of the mask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.all_tasks import TASKS
from winml.modelkit.evaluation.segmentation import upsample
from winml.modelkit.evaluation.task import Setting


def test_logits_are_brought_to_size_as_torch_does_it() -> None:
    # torch.nn.functional.interpolate(mode="bilinear", align_corners=False) of torch 2.13.
    made = upsample(np.asarray([[[0.0, 1.0, 4.0], [2.0, 8.0, -3.0]]], np.float32), (3, 5))
    expected = [[[0.0, 0.4, 1.0, 2.8, 4.0], [1.0, 2.4, 4.5, 2.1, 0.5], [2.0, 4.4, 8.0, 1.4, -3.0]]]
    np.testing.assert_allclose(made, expected, atol=1e-6)


def _scored(mask: Any, folder: Path | None = None) -> Any:
    logits = np.asarray([[[[1.0, 0.0]], [[0.0, 1.0]]]], np.float32)
    scorer = TASKS["image-segmentation"].scorer(Setting(("logits",), folder))
    return scorer.score(Sample({}, mask, where="sample 3"), [{"logits": logits}])


def test_pixels_without_a_class_are_not_judged() -> None:
    found = _scored(np.asarray([[0, 255, 0, 1]], np.uint8))
    assert found.values == {"overlap": {"0": [1, 2], "1": [1, 2]}, "right": 2.0, "pixels": 3.0}


def test_labels_are_reduced_where_the_processor_says_so(tmp_path: Path) -> None:
    config = {"image_processor_type": "SegformerImageProcessor", "do_reduce_labels": True}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    found = _scored(np.asarray([[1, 0, 255, 2]], np.uint8), tmp_path)
    assert found.values == {"overlap": {"0": [1, 1], "1": [1, 1]}, "right": 2.0, "pixels": 2.0}


def test_a_class_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(DataError, match="mask of sample 3 has class 2 but the model has 2 classes"):
        _scored(np.asarray([[0, 2]], np.uint8))
