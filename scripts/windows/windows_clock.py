"""The wall clock of Windows, which steps by 15.6 ms; that of Wine does not, and Dask waits for a step without end.

Python 3.13 reads the precise clock on Windows too. Loaded by a `.pth` file in the site-packages of the set-up.
"""

import sys
import time

if sys.version_info < (3, 13):
    _precise_ns = time.time_ns
    _STEP_NS = 15_625_000

    def _time_ns() -> int:
        return _precise_ns() // _STEP_NS * _STEP_NS

    def _time() -> float:
        return _time_ns() / 1e9

    time.time_ns = _time_ns
    time.time = _time
