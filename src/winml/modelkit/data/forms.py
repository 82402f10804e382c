"""THE table of forms: how a row becomes a sample where a task wants more than an image or a text with its class."""

from __future__ import annotations

from collections.abc import Callable

from winml.modelkit.core.errors import DataError
from winml.modelkit.data.audio_rows import by_spoken
from winml.modelkit.data.image_rows import by_depth, by_points, by_segments, by_target
from winml.modelkit.data.prompt_rows import by_options, by_passage, by_prompt
from winml.modelkit.data.row_plans import Columns, RowPlan, plan_for
from winml.modelkit.data.samples import Form, SampleRequest
from winml.modelkit.data.series import by_series
from winml.modelkit.data.text_rows import by_asked, by_choices, by_document, by_gaps, by_passages
from winml.modelkit.data.video import by_video, takes_video

PLANS: dict[Form, Callable[[SampleRequest, Columns], RowPlan]] = {
    "gaps": by_gaps,
    "choices": by_choices,
    "passages": by_passages,
    "depth": by_depth,
    "target": by_target,
    "points": by_points,
    "segments": by_segments,
    "series": by_series,
    "spoken": by_spoken,
    "document": by_document,
    "asked": by_asked,
    "passage": by_passage,
    "prompt": by_prompt,
    "options": by_options,
}


_ELSEWHERE: dict[Form, str] = {
    "retrieval": "retrieval needs a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv",
    "keypoints": "keypoints need COCO's .json file of keypoints, beside its images",
}
"""Forms that rows of a table do not have."""


def plan_rows(wanted: SampleRequest, columns: Columns, classes: Callable[[], tuple[str, ...]]) -> RowPlan:
    """How rows become samples, by the form or by what the model takes."""
    if wanted.form in _ELSEWHERE:
        raise DataError(_ELSEWHERE[wanted.form])
    if wanted.form in PLANS:
        return PLANS[wanted.form](wanted, columns)
    if wanted.form == "joined" and takes_video(wanted.inputs) and columns.find("video") is not None:
        return by_video(wanted, columns)
    return plan_for(wanted, columns, classes)
