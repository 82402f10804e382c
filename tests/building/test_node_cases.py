"""ONNX's own node tests through `optimize` and `quantize`: right, or with a warning; never a traceback.

All of them: `benchmarks/robustness/node_tests.py`, which takes about half an hour.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import node_zoo
from node_zoo import BAD, MODES, Case, Judge

MODULES = ("and_", "attention", "conv", "layernormalization", "lstm", "matmul", "scatterelements", "splittosequence")
SAMPLE = {
    "test_and2d.constant": "no opset below 7 is converted",
    "test_attention_4d.constant": "the standard Attention is not that of com.microsoft",
    "test_attention_4d_causal_nonpad_negative_offset_structural_empty_expanded": "NaN inside",
    "test_conv_with_strides_padding.constant": "what is quantized most",
    "test_layer_normalization_4d_axis1.constant": "the static quantizer takes scales of one dimension only",
    "test_lstm_with_initial_bias.constant": "the dynamic quantizer knows it",
    "test_matmul_3d.constant": "integer kernels take matrices only",
    "test_matmul_4d_1d.constant": "a weight of one dimension",
    "test_scatter_elements_with_reduction_mul": "no float16 kernel for this attribute",
    "test_split_to_sequence_1": "sequences are not converted to float16",
}
"""What each is hard for."""
SLOW_STEP = 25


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    made = Judge(tmp_path_factory.mktemp("nodes"))
    yield made
    made.close()


def _problems(judge: Judge, case: Case, *, refused: bool) -> list[str]:
    """What must not become of a case in any mode; whether it may be refused is up to the caller."""
    bad = (*BAD, "crashed") if refused else (*BAD, "crashed", "refused")
    found = judge.judge(case, MODES)
    return [f"{case.name} {mode}: {v.verdict}: {v.detail}" for mode, v in found.items() if v.verdict in bad]


@pytest.mark.parametrize("name", SAMPLE)
def test_a_node_test_that_was_hard_is_right_in_every_mode(judge: Judge, name: str) -> None:
    case = next(case for case in node_zoo.cases(*MODULES) if case.name == name)
    assert not _problems(judge, case, refused=False)


@pytest.mark.slow
def test_many_node_tests_are_right_refused_or_warned_about(judge: Judge) -> None:
    chosen = node_zoo.cases()[::SLOW_STEP]
    assert len(chosen) > 100
    assert [problem for case in chosen for problem in _problems(judge, case, refused=True)] == []
