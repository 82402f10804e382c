from __future__ import annotations

import pytest

from winml.modelkit.build_matrix.models import MatrixModel
from winml.modelkit.build_matrix.plan import COMBOS, Cell, label, plan
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog
from winml.modelkit.feed import names

RESNET = MatrixModel("microsoft/resnet-50", "microsoft/resnet-50", "image-classification")


def _plan(*models: MatrixModel, targets: tuple[Target, ...] = COMBOS, **more: object) -> tuple[Cell, ...]:
    return plan(models, targets, run_stamp="20260609", **more)  # type: ignore[arg-type]


def test_without_targets_there_are_eight_combos_each_in_a_folder_of_its_model() -> None:
    cells = _plan(RESNET)
    assert [c.label for c in cells] == [
        "qnn_npu", "qnn_gpu", "ov_cpu", "ov_npu", "ov_gpu", "mlas_cpu", "dml_gpu", "vitisai_npu",
    ]  # fmt: skip
    assert cells[0].folder == "microsoft-resnet-50-image-classification/qnn_npu"
    assert cells[0].version == "0.0.0-20260609-qnn-npu-microsoft-resnet-50-image-classification"


def test_the_precision_of_a_combo_comes_from_the_table_of_providers() -> None:
    found = {c.label: c.precision for c in _plan(RESNET)}
    assert found["qnn_npu"] == "w8a16"
    assert {found[name] for name in found if name != "qnn_npu"} == {"fp32"}
    for cell in _plan(RESNET):
        info = catalog.BY_NAME[cell.target.ep]
        assert cell.precision == info.auto_precision.get(cell.target.device, "fp32")
        assert not cell.calibrated or not (info.native_quantization or cell.target.device in info.unquantized)


def test_one_target_goes_straight_into_the_folder_of_the_model_and_several_do_not() -> None:
    assert [c.folder for c in _plan(RESNET, targets=(Target("cpu", "cpu"),))] == [RESNET.folder]
    two = _plan(RESNET, targets=(Target("cpu", "cpu"), Target("cuda", "gpu")))
    assert [c.folder for c in two] == [f"{RESNET.folder}/mlas_cpu", f"{RESNET.folder}/cuda_gpu"]


def test_the_folder_of_a_version_is_the_label_that_a_pull_gives_it() -> None:
    for info in catalog.TABLE:
        for device in info.devices:
            target = Target(info.name, device)
            (cell,) = _plan(RESNET, targets=(target,))
            parts = names.parse_version(cell.version)
            assert parts is not None
            assert parts.folder == label(target)
            assert parts.ep is not None
            assert catalog.find(parts.ep) is info


def test_versions_and_folders_of_all_cells_differ_also_with_one_package_for_all() -> None:
    long = [MatrixModel("o/" + "x" * 300 + end, "o/" + "x" * 300 + end) for end in "ab"]
    cells = _plan(*long, RESNET, package_name="winml-cli-models")
    assert len({c.version for c in cells}) == len({c.folder for c in cells}) == 24
    assert all(len(c.version) < 128 for c in cells)
    assert {c.package for c in cells} == {"winml-cli-models"}
    assert {c.package for c in _plan(RESNET)} == {RESNET.folder}


def test_only_what_can_compile_is_compiled() -> None:
    compiled = {c.label for c in _plan(RESNET, compiled=True) if c.compile}
    assert compiled == {"qnn_npu", "qnn_gpu", "ov_cpu", "ov_npu", "ov_gpu", "vitisai_npu"}
    assert not any(c.compile for c in _plan(RESNET))


def test_names_that_no_feed_takes_are_refused() -> None:
    with pytest.raises(RequestError, match="run stamp"):
        plan([RESNET], COMBOS, run_stamp="2026-06-09")
    with pytest.raises(RequestError, match="package name"):
        _plan(RESNET, package_name="Not Good")
    with pytest.raises(RequestError, match="twice"):
        _plan(RESNET, targets=(Target("cpu", "cpu"), Target("cpu", "cpu")))
