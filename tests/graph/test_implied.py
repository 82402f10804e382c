"""Sizes that a graph fixes by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from winml.modelkit.graph.implied import infer_sizes


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize(
    ("text", "weights", "sizes"),
    [
        ("g (float[b,t,s] x) => (float[b,t,4] y) { r = Relu(x)  y = MatMul(r, w) }", {"w": ones(7, 4)}, {"s": 7}),
        (
            "g (float[b,?,8] x) => (float[b,?,8] y) { y = Add(x, table) }",
            {"table": ones(1, 197, 8)},
            {"x[1]": 197},
        ),
        (
            "g (float[b,s] x) => (float[b,4] y) { t = Transpose(x)  y = Gemm<transA = 1, transB = 1>(t, w) }",
            {"w": ones(4, 9)},
            {"s": 9},
        ),
        ("g (float[b,c,h,w] x) => (float[b,8,h,w] y) { y = Conv<group = 2>(x, k) }", {"k": ones(8, 3, 1, 1)}, {"c": 6}),
        ("g (float[1,s] x) => (float[4,4] y) { y = Reshape(x, to) }", {"to": np.array([4, 4])}, {"s": 16}),
        ("g (float[t,b,f] x) => (float[t,1,b,4] y) { y = LSTM<hidden_size = 4>(x, w, r) }",
         {"w": ones(1, 16, 5), "r": ones(1, 16, 4)}, {"f": 5}),
        ("g (float[a,s] x, float[2,n] z) => (float[c,s] y) { y = Concat<axis = 1>(x, z) }", {}, {"a": 2}),
    ],
)  # fmt: skip
def test_an_operator_that_takes_one_size_alone_fixes_it(
    parse: Any, text: str, weights: dict[str, np.ndarray], sizes: dict[str, int]
) -> None:
    found = infer_sizes(parse(text, **weights))
    assert {name: size.size for name, size in found.items()} == sizes
    assert all(size.source == "graph" and size.reason.startswith("required by ") for size in found.values())


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("g (float[1,3,h,w] x) => (float[1,8,h,w] y) { y = Conv(x, k) }", {"k": ones(8, 3, 3, 3)}),
        ("g (float[1,s] x) => (float[a,4] y) { y = Reshape(x, to) }", {"to": np.array([-1, 4])}),
        ("g (float[b,s] x) => (float[b,s] y) { y = Add(x, one) }", {"one": ones(1)}),
        # two that contradict each other are no answer
        ("g (float[b,s] x) => (float[b,4] y, float[b,4] z) { y = MatMul(x, v)  z = MatMul(x, w) }",
         {"v": ones(7, 4), "w": ones(8, 4)}),
        # flattened before the product: 7 x 7 or 1 x 49
        ("g (float[1,h,w] x) => (float[1,4] y) { f = Flatten(x)  y = MatMul(f, v) }", {"v": ones(49, 4)}),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_not_implied(parse: Any, text: str, weights: dict[str, np.ndarray]) -> None:
    assert infer_sizes(parse(text, **weights)) == {}
