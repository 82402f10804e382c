from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from winml.modelkit.core.errors import DataError
from winml.modelkit.evaluation.kept_outputs import CHOSEN, Keeper, digest_of, read, sample_values


def test_small_outputs_are_kept_whole_and_large_ones_by_values_that_a_seed_chooses(tmp_path: Path) -> None:
    small, large = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(100_000, dtype=np.float32)
    keeper = Keeper(tmp_path / "o.npz")
    keeper.add("candidate", 0, 0, small)
    keeper.add("reference", 0, 0, large)
    keeper.add("reference", 0, 1, None)
    told = keeper.write()
    assert told is not None
    assert {name: facts.whole for name, facts in told.arrays.items()} == {
        "candidate.0.0": True,
        "reference.0.0": False,
    }
    assert told.arrays["reference.0.0"].digest == digest_of(large)
    found = read(tmp_path / "o.npz")
    assert np.array_equal(found["candidate.0.0"], small)
    assert np.array_equal(found["reference.0.0"], sample_values(large))
    assert len(set(found["reference.0.0"].tolist())) == CHOSEN


def test_nothing_is_written_where_nothing_was_asked_for(tmp_path: Path) -> None:
    keeper = Keeper(None)
    keeper.add("candidate", 0, 0, np.zeros(3))
    assert keeper.write() is None
    assert not list(tmp_path.iterdir())


def test_a_file_that_unpacks_to_more_than_outputs_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "o.npz", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("candidate.0.0.npy", bytes(8 * 2**20))
    with pytest.raises(DataError, match="more than saved outputs"):
        read(tmp_path / "o.npz")


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY"])
def test_a_file_of_something_else_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "o.npz").write_bytes(content)
    with pytest.raises(DataError, match="holds no outputs"):
        read(tmp_path / "o.npz")
