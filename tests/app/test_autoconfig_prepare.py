from __future__ import annotations

from typing import Any

import pytest

from winml.modelkit.app.autoconfig_prepare import AutoconfigRequest, check, prepared
from winml.modelkit.core.errors import RequestError


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": "image-classification"}, "a task is measured on labelled data"),
        ({"max_drop": 0.1}, "a limit for the metric needs labelled data"),
        ({"knowledge": "nowhere"}, "folder not found: `nowhere`"),
    ],
)
def test_what_could_not_count_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        check(AutoconfigRequest("model.onnx", "out", **given))


def test_a_target_that_is_named_twice_in_two_ways_is_refused() -> None:
    with pytest.raises(RequestError, match="names a target twice"):
        prepared(AutoconfigRequest("model.onnx", "out", targets=("cpu", "CPU")), lambda event: None)
