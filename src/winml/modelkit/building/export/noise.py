"""Random numbers that a class draws while it runs, replaced by their mean: otherwise no two outputs compare.

Classes of speech draw noise for variety, and one keeps its dropout on when it is used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def mean_noise(*, active: bool) -> Iterator[None]:
    """Normal noise is 0, uniform noise 0.5, and a coin falls on its likelier side."""
    if not active:
        yield
        return
    import torch

    def full(value: float, make: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any, generator: Any = None, **kwargs: Any) -> Any:
            return make(*args, **kwargs) + value if value else make(*args, **kwargs)

        return inner

    def toss(chance: Any, p: float | None = None, **_: Any) -> Any:
        likely = chance if p is None else torch.full_like(chance, p)
        return (likely >= 0.5).to(chance.dtype)

    replaced = {
        "randn": full(0.0, torch.zeros),
        "randn_like": full(0.0, torch.zeros_like),
        "rand": full(0.5, torch.zeros),
        "rand_like": full(0.5, torch.zeros_like),
        "bernoulli": toss,
    }
    before = {name: getattr(torch, name) for name in replaced}
    for name, function in replaced.items():
        setattr(torch, name, function)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(torch, name, function)
