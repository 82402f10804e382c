"""Outputs kept for a comparison: what was written is read back, and a full disk is a matter of the machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from winml.modelkit.core.errors import DiskFull
from winml.modelkit.evaluation import saved_outputs

FULL = Path("/dev/full")
"""A file that takes nothing."""


def test_samples_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    first, second = np.arange(3.0), np.array(["a", "bc"], dtype=object)
    with saved_outputs.Writer(tmp_path / "kept") as writer:
        writer.write([{"y": first, "z": second}])
    ((run,),) = saved_outputs.read(tmp_path / "kept", outputs=2, samples=1)
    assert run[0].tolist() == first.tolist()
    assert run[1].tolist() == second.tolist()


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize("values", [1, 100_000])
def test_a_full_disk_is_said_whether_the_last_bytes_do_not_fit_or_all_of_them(values: int) -> None:
    with (
        pytest.raises(DiskFull, match="outputs cannot be kept for the comparison: disk full"),
        saved_outputs.Writer(FULL) as writer,
    ):
        writer.write([{"y": np.zeros(values)}])
