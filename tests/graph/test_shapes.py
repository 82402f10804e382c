from __future__ import annotations

import pytest

import model_zoo
from winml.modelkit.graph.shapes import infer_shapes


def test_values_that_shapes_are_made_of_are_followed() -> None:
    model = model_zoo.text_model("g (float[2,3] x) => (float[n,m] y) { s = Shape(x)  y = Reshape(x, s) }")
    assert [d.dim_value for d in infer_shapes(model).graph.output[0].type.tensor_type.shape.dim] == [2, 3]


@pytest.mark.parametrize("size", [2**62, 2**31, 2**30])
def test_a_dimension_that_no_shape_has_does_not_take_all_memory(size: int) -> None:
    """Followed, each element would be an object: at once, or it would be killed for its memory."""
    plain = model_zoo.text_model(f"agraph (float[{size}] x) => (float[{size}] y) {{ y = Add(x, x) }}")
    assert infer_shapes(plain).graph.output[0].type.tensor_type.shape.dim[0].dim_value == size
    inside = model_zoo.text_model(
        f"agraph (seq(float[{size}]) x) => (seq(float[{size}]) y) "
        f"{{ y = SequenceMap <body = b (float[{size}] v) => (float[{size}] w) {{ w = Add(v, v) }}> (x) }}"
    )
    assert infer_shapes(inside) is not None
    made = model_zoo.text_model(
        f"agraph (float[1] x) => (float[n] y) <int64[1] s = {{{size}}}> {{ z = ConstantOfShape(s)  y = Add(z, z) }}"
    )
    assert infer_shapes(made).graph.output[0].type.tensor_type.shape.dim[0].dim_value == size


def test_the_open_end_of_a_slice_is_no_size() -> None:
    model = model_zoo.text_model(
        """g (float[2,3] x) => (float[n,m] y) <int64[1] a = {0}, int64[1] b = {9223372036854775807}>
        { s = Shape(x)  t = Slice(s, a, b)  y = Reshape(x, t) }"""
    )
    assert [d.dim_value for d in infer_shapes(model).graph.output[0].type.tensor_type.shape.dim] == [2, 3]
