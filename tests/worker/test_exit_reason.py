from __future__ import annotations

import signal
import sys

import pytest

from winml.modelkit.worker.exit_reason import NTSTATUS, describe


@pytest.mark.posix("it has other numbers for signals")
@pytest.mark.parametrize("name", ["SIGFPE", "SIGSEGV", "SIGABRT", "SIGILL", "SIGBUS"])
def test_a_crash_is_named_by_its_signal(name: str) -> None:
    assert describe(-signal.Signals[name].value) == f"crashed with {name}"


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS numbers SIGBUS otherwise")
@pytest.mark.parametrize(("number", "name"), [(6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"), (11, "SIGSEGV")])
def test_a_crash_on_a_linux_node_is_named_on_windows_as_there(number: int, name: str) -> None:
    assert describe(-number) == f"crashed with {name}"


def test_a_kill_is_not_called_out_of_memory() -> None:
    assert describe(-9) == "was killed by the system (SIGKILL)"


@pytest.mark.parametrize(("status", "name"), sorted(NTSTATUS.items()))
def test_windows_statuses_are_named_signed_or_unsigned(status: int, name: str) -> None:
    assert describe(status) == f"crashed with {name} (0x{status:08X})"
    assert describe(status - 2**32) == describe(status)


def test_an_unknown_windows_status_keeps_its_number() -> None:
    assert describe(0xC0001234) == "crashed with status 0xC0001234"


def test_a_plain_exit_code_is_told() -> None:
    assert describe(3) == "ended unexpectedly with exit code 3"
