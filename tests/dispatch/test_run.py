"""How the end of a job is read."""

from __future__ import annotations

import pytest

from winml.modelkit.dispatch.run import was_killed


@pytest.mark.parametrize(
    ("code", "said", "windows", "killed"),
    [
        (-9, "", False, True),
        (-15, "", False, True),
        (-11, "", False, False),
        (1, "", False, False),
        (1, "", True, True),  # taskkill, a closed job
        (15, "", True, True),  # psutil
        (-1073741510, "", True, True),  # Ctrl-C as a signed number
        (1, "error: no such file\n", True, False),
        (1, '{"ok": false, "error": {"code": "failed"}}', True, False),
        (1, "Traceback (most recent call last):\n", True, False),
        (1, "note: half of it is done\n", True, True),
        (2, "", True, False),
        (0xC0000005, "", True, False),
    ],
)
def test_a_job_that_others_ended_is_told_from_one_that_failed(
    code: int, said: str, windows: bool, killed: bool
) -> None:
    assert was_killed(code, said, windows=windows) is killed
