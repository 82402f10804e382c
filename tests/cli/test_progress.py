from __future__ import annotations

import pytest

from winml.modelkit.cli.autoconfig_progress import SearchProgress
from winml.modelkit.cli.compare_progress import CompareProgress
from winml.modelkit.cli.perf_progress import PerfProgress
from winml.modelkit.cli.progress import EvalProgress, LineProgress
from winml.modelkit.cli.stage_progress import AnalyzeProgress, CompileProgress, StageProgress
from winml.modelkit.core.events import ExportNeeded


@pytest.mark.parametrize(
    "kind", [AnalyzeProgress, CompareProgress, CompileProgress, EvalProgress, SearchProgress, StageProgress]
)
def test_a_command_that_has_to_export_its_model_first_says_so(
    kind: type[LineProgress], capsys: pytest.CaptureFixture[str]
) -> None:
    with kind() as shown:
        shown.on_event(ExportNeeded("./bert"))
    assert capsys.readouterr().err == "note: exporting ./bert, which is not in the cache\n"


def test_so_does_perf(capsys: pytest.CaptureFixture[str]) -> None:
    with PerfProgress() as shown:
        shown.on_event(ExportNeeded("./bert"))
    assert "exporting ./bert" in capsys.readouterr().err
