from __future__ import annotations

import onnx
import pytest

from family_zoo import FAMILIES, dinov2, vit
from model_zoo import conv_net, relu
from winml.modelkit.graph.blocks import find_block, find_repeat
from winml.modelkit.graph.description import RepeatedBlock


def marks(model: onnx.ModelProto) -> tuple[str, str]:
    found = find_block(model)
    assert found is not None
    return found.marks, found.kinds


@pytest.mark.parametrize("family", FAMILIES)
def test_neither_width_nor_depth_nor_the_way_norms_are_written_changes_a_block(family: str) -> None:
    make = FAMILIES[family]
    found = {marks(make(layers=n, width=w, whole_norms=f)) for n, w, f in ((2, 8, True), (5, 16, True), (3, 8, False))}
    assert len(found) == 1


def test_families_that_differ_have_blocks_that_differ() -> None:
    assert len({marks(make()) for make in FAMILIES.values()}) == len(FAMILIES)
    # What tells DINOv2 from a plain ViT is a scale for every channel behind each half of a layer.
    assert marks(dinov2())[0].replace("K", "") == marks(vit())[0]


def test_the_count_and_the_share_are_those_of_the_repeats() -> None:
    found = find_block(vit(layers=4))
    assert found is not None
    assert (found.count, found.kinds) == (4, "C")
    assert 0.9 < found.share < 1


def test_a_graph_that_repeats_nothing_has_no_block() -> None:
    assert find_block(relu()) is None
    assert find_block(conv_net()) is None


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("", None),
        ("abcd", None),
        ("xabcdabcdy", RepeatedBlock("abcd", 2, 0.8)),
        # Wherever a repeat begins, its block is called the same.
        ("cdabcdab", RepeatedBlock("abcd", 2, 1.0)),
        # A block that itself repeats a shorter one is that one.
        ("abcd" * 4, RepeatedBlock("abcd", 4, 1.0)),
        # Repeats in several places count together.
        ("abcdabcd--abcdabcdabcd", RepeatedBlock("abcd", 5, round(20 / 22, 4))),
        # Two marks in turn are in every net.
        ("abababab", RepeatedBlock("abab", 2, 1.0)),
    ],
)
def test_a_repeat_is_the_shortest_text_that_covers_most(text: str, block: RepeatedBlock | None) -> None:
    assert find_repeat(text) == block
