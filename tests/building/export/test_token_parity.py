"""When a token may be another one than PyTorch's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from winml.modelkit.building.export.token_parity import TIE, _require_tie
from winml.modelkit.core.errors import CheckFailed

pytestmark = [pytest.mark.hf, pytest.mark.xdist_group("hf")]


def _rate(*logits: float) -> Any:
    """A model that rates the tokens of its vocabulary so after any text."""
    import torch

    return lambda input_ids: SimpleNamespace(logits=torch.tensor(logits).expand(1, input_ids.shape[1], -1))


def test_two_tokens_that_are_rated_alike_are_a_tie() -> None:
    _require_tie(_rate(1.0, 1.0 - TIE / 2), np.array([0, 1]), made=1, wanted=0)
    _require_tie(_rate(1.0, 1.0 - TIE / 2), np.array([0, 1]), made=0, wanted=1)


@pytest.mark.parametrize(
    ("made", "wanted", "message"),
    [
        (1, 0, "the likeliest is 1 but PyTorch's `generate` has 0"),
        (0, 1, "without a cache PyTorch finds 0 likelier"),
    ],
)
def test_a_difference_either_way_is_no_tie(made: int, wanted: int, message: str) -> None:
    with pytest.raises(CheckFailed, match=message):
        _require_tie(_rate(1.0, 0.9), np.array([0, 1]), made=made, wanted=wanted)
