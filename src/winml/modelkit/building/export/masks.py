"""A form of padding in attention masks that every execution provider takes.

transformers reads padding as `mask[batch, key]` with two index tensors, which becomes a GatherND that QNN leaves on
the CPU, splitting every text model in two. All batches are wanted, so that picking keys alone is the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor


def _padding(padding_mask: Tensor) -> Callable[..., Tensor]:
    def inner(batch: Any, head: Any, query: Any, key: Tensor) -> Tensor:
        return padding_mask.index_select(1, key.flatten())[:, None, None, :]

    return inner


@contextlib.contextmanager
def plain_padding() -> Iterator[None]:
    """Masks without GatherND while a model is traced."""
    from transformers import masking_utils

    original = masking_utils.padding_mask_function
    masking_utils.padding_mask_function = _padding
    try:
        yield
    finally:
        masking_utils.padding_mask_function = original
