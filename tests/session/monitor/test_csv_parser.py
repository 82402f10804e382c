"""The CSV of the QNN EP: rows as the EP wrote them here, and files that are cut, joined or no CSV at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from winml.modelkit.session.monitor.qnn.csv_parser import HEADER, SOURCES, CsvError, CsvRun, QnnCsv

PLAIN = ",".join(HEADER)
SOURCED = f"{PLAIN},{SOURCES}"
NAMES = st.text(st.characters(codec="ascii", exclude_characters='\r\n;"'), min_size=1, max_size=12).filter(
    lambda s: "OpId" not in s and s.strip() == s and s not in ("Input", "Output")
)
NODES = st.lists(st.tuples(NAMES, st.integers(0, 99), st.integers(0, 10**12), st.lists(NAMES, max_size=3)), max_size=5)


def _run(nodes: list[tuple[str, int, int, list[str]]], execute_us: int, *, sourced: bool) -> str:
    def row(*cells: object, sources: str = "") -> str:
        return ",".join(map(str, cells)) + (f",{sources}" if sourced else "") + "\n"

    lines = [row(0, "BACKEND", 4, "COUNT", "BACKEND", "ROOT", "Number of HVX threads used")]
    lines += [row(0, "BACKEND", 77, "CYCLES", "BACKEND", "ROOT", "Accelerator (execute) time (cycles)")]
    for name, number, cycles, sources in nodes:
        event = f"{name}:OpId_{number} (cycles)"
        lines.append(row(0, "NODE", cycles, "CYCLES", "BACKEND", "SUB-EVENT", event, sources=";".join(sources)))
    lines.append(row(0, "BACKEND", 55, "US", "BACKEND", "ROOT", "Accelerator (execute) time"))
    lines.append(row(0, "EXECUTE", execute_us, "US", "BACKEND", "ROOT", "QNN (execute) time"))
    return "".join(lines)


def _read(path: Path, content: bytes | str, begin: int = 0) -> tuple[list[CsvRun], list[str]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    csv = QnnCsv(path, begin)
    return list(csv.runs()), csv.notes


def test_a_run_has_its_operators_its_figures_and_ends_with_its_execute_row(tmp_path: Path) -> None:
    text = SOURCED + "\n0,FINALIZE,25783,US,BACKEND,ROOT,QNN (finalize) time,\n"
    text += "0,NODE,1806,CYCLES,BACKEND,SUB-EVENT,Input OpId_2 (cycles),\n"
    text += _run([("conv_token_2", 72, 113422, ["x_DequantizeLinear", "conv_token_2"])], 7098, sourced=True)
    (run,), notes = _read(tmp_path / "p.csv", text)
    assert notes == []
    assert (run.execute_us, run.accelerator_us, run.accelerator_cycles, run.hvx_threads) == (7098, 55, 77, 4)
    boundary, conv = run.nodes
    assert (boundary.name, boundary.boundary, boundary.sources) == ("Input", True, ())
    assert (conv.name, conv.op_id, conv.value, conv.unit) == ("conv_token_2", "72", 113422, "cycles")
    assert conv.sources == ("x_DequantizeLinear", "conv_token_2")


@pytest.mark.parametrize("level_rows", ["", "0,UNKNOWN,509,US,BACKEND,SUB-EVENT,Graph Optimizations\n"])
def test_levels_without_operators_give_runs_without_nodes(tmp_path: Path, level_rows: str) -> None:
    (run,), _ = _read(tmp_path / "p.csv", PLAIN + "\n" + level_rows + _run([], 5, sourced=False))
    assert run.nodes == ()


def test_partitions_are_told_apart_by_their_operators(tmp_path: Path) -> None:
    one, two = _run([("a", 1, 5, [])], 9, sourced=False), _run([("b", 1, 6, [])], 9, sourced=False)
    runs, _ = _read(tmp_path / "p.csv", PLAIN + "\n" + one + two + one + two)
    assert [r.signature for r in runs] == [(("a", "1"),), (("b", "1"),)] * 2


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\xff\x01" * 50, b"a,b,c\n", b"Msg Timestamp,Message\n", PLAIN.replace("Time,", "Times,").encode()],
)
def test_another_header_is_an_error_that_shows_it(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CsvError, match="its header is"):
        _read(tmp_path / "p.csv", content)


def test_what_an_earlier_trace_left_in_the_file_is_not_read(tmp_path: Path) -> None:
    earlier = PLAIN + "\n" + _run([("old", 1, 5, [])], 9, sourced=False)
    runs, notes = _read(tmp_path / "p.csv", earlier + _run([("new", 1, 6, [])], 9, sourced=False), len(earlier))
    assert [r.nodes[0].name for r in runs] == ["new"]
    assert notes == ["p.csv held an earlier trace; only what was appended is read"]


def test_a_second_header_is_no_row_and_is_noted(tmp_path: Path) -> None:
    part = PLAIN + "\n" + _run([("a", 1, 5, [])], 9, sourced=False)
    sourced = SOURCED + "\n" + _run([("a", 1, 6, ["n"])], 9, sourced=True)
    runs, notes = _read(tmp_path / "p.csv", part + sourced)
    assert [r.nodes[0].value for r in runs] == [5, 6]
    assert runs[1].nodes[0].sources == ("n",)
    assert notes == ["p.csv holds 2 headers; traces were appended to it"]


def test_a_file_without_its_end_loses_the_unfinished_run_and_says_so(tmp_path: Path) -> None:
    text = PLAIN + "\n" + _run([("a", 1, 5, [])], 9, sourced=False) * 2
    runs, notes = _read(tmp_path / "p.csv", text[: text.rindex("0,EXECUTE") + 6])
    assert len(runs) == 1
    assert notes == ["1 rows of p.csv could not be read", "the last run in p.csv is incomplete and is skipped"]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=st.lists(st.tuples(NODES, st.integers(0, 10**9)), max_size=4), sourced=st.booleans())
def test_reads_back_what_was_written(
    tmp_path: Path, runs: list[tuple[list[tuple[str, int, int, list[str]]], int]], sourced: bool
) -> None:
    head = (SOURCED if sourced else PLAIN) + "\n"
    found, notes = _read(tmp_path / "p.csv", head + "".join(_run(n, us, sourced=sourced) for n, us in runs))
    assert notes == []
    assert [r.execute_us for r in found] == [us for _, us in runs]
    for run, (nodes, _) in zip(found, runs, strict=True):
        assert [(n.name, n.op_id, n.value) for n in run.nodes] == [(n, str(i), v) for n, i, v, _ in nodes]
        assert not sourced or [n.sources for n in run.nodes] == [tuple(s) for *_, s in nodes]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nodes=NODES, cut=st.integers(0, 2000), sourced=st.booleans())
def test_a_cut_file_gives_a_prefix_of_its_runs(
    tmp_path: Path, nodes: list[tuple[str, int, int, list[str]]], cut: int, sourced: bool
) -> None:
    head = (SOURCED if sourced else PLAIN) + "\n"
    whole = (head + _run(nodes, 3, sourced=sourced) * 3).encode()
    cut = len(head) + cut % (len(whole) - len(head))
    complete, _ = _read(tmp_path / "p.csv", whole)
    found, _ = _read(tmp_path / "p.csv", whole[:cut])
    assert found == complete[: len(found)]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(garbage=st.binary(max_size=300))
def test_garbage_after_the_header_never_raises_and_is_never_a_run(tmp_path: Path, garbage: bytes) -> None:
    found, _ = _read(tmp_path / "p.csv", PLAIN.encode() + b"\n" + garbage.replace(b"EXECUTE", b""))
    assert found == []
