"""What an export tries when a model cannot be traced as asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from winml.modelkit.building.export.attempts import describe_fallback, list_attempts
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.core.config import ExportSection, InputSection
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.core.placeholders import Placeholders

SECTION = ExportSection(
    task="text-classification",
    inputs=(
        InputSection("input_ids", "int64", ("batch", "sequence"), 3, 99),
        InputSection("bbox", "int64", ("batch", "sequence", 4), 0, 99),
    ),
    sizes={"batch": 2, "sequence": 16},
    fall_back=True,
)


def folder(path: Path) -> ModelFolder:
    (path / "config.json").write_text(json.dumps({"model_type": "new", "max_position_embeddings": 32}))
    return ModelFolder(path)


def shapes(section: ExportSection) -> list[tuple[int | str, ...]]:
    return [entry.shape for entry in section.inputs]


def test_every_attempt_asks_for_less_than_the_one_before(tmp_path: Path) -> None:
    found = list(list_attempts(SECTION, folder(tmp_path)))
    fixed = [(1, 32), (1, 32, 4)]
    opened: list[tuple[int | str, ...]] = [("batch", "sequence"), ("batch", "sequence", 4)]
    assert [(one.exporter, shapes(one), one.sizes) for one in found] == [
        ("transformers", opened, {"batch": 2, "sequence": 16}),
        ("transformers", [("batch", 32), ("batch", 32, 4)], {"batch": 2}),
        ("transformers", fixed, {}),
        ("legacy", opened, {"batch": 2, "sequence": 16}),
        ("legacy", fixed, {}),
    ]


def test_a_section_that_allows_nothing_else_is_tried_once(tmp_path: Path) -> None:
    strict = ExportSection(task="t", inputs=SECTION.inputs, sizes=SECTION.sizes)
    assert list(list_attempts(strict, folder(tmp_path))) == [strict]


def test_what_was_done_instead_is_said_with_the_reason(tmp_path: Path) -> None:
    asked, batch, fixed, *_, last = list_attempts(SECTION, folder(tmp_path))
    failed = [(asked, RunFailedError("it branches on a size"))]
    assert describe_fallback(asked, []) == ()
    assert describe_fallback(batch, failed) == (
        "fixed axes: sequence at 32; as asked it failed: it branches on a size",
    )
    assert describe_fallback(fixed, failed) == (
        "fixed axes: batch at 1, sequence at 32; as asked it failed: it branches on a size",
    )
    assert describe_fallback(last, failed) == (
        "fixed axes: batch at 1, sequence at 32; exporter: legacy; as asked it failed: it branches on a size",
    )


def test_a_model_of_images_and_text_that_cannot_be_traced_is_tried_with_its_text(tmp_path: Path) -> None:
    words = InputSection("input_ids", "int64", ("batch", "sequence"), 3, 99, placeholders=Placeholders(98, 4))
    images = InputSection("pixel_values", "float32", ("batch", 3, 8, 8))
    seeing = replace(SECTION, inputs=(words, images), derived=("inputs were derived", "an image takes 4 words"))
    asked, *_, last = list_attempts(seeing, folder(tmp_path))
    assert last.inputs == (replace(words, placeholders=None),)
    assert (last.exporter, last.sizes, last.derived) == ("transformers", SECTION.sizes, ("inputs were derived",))
    assert describe_fallback(last, [(asked, RunFailedError("it branches"))]) == (
        "exported with its text alone, without pixel_values; as asked it failed: it branches",
    )
