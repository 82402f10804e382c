"""Files with damaged bytes: every one is read or refused in our words, none ends the program.

The readers and the damage are in `tests/fuzz_readers.py`; `make fuzz` runs them for longer, and watches time, memory
and files besides.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from program import winml_process

import fuzz_readers
import model_zoo
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.session.arm import MeasureArguments, arm_arguments
from winml.modelkit.worker.client import Worker

MUTANTS = 200
SEED = 20261115


def _flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 8)):
        data[rng.randrange(len(data))] = rng.randrange(256)


def _cut(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    del data[start : start + rng.randint(1, 64)]


def _insert(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    data[at:at] = rng.randbytes(rng.randint(1, 32))


def _repeat(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    data[start:start] = data[start : start + rng.randint(1, 128)]


def _change(model: onnx.ModelProto, rng: random.Random) -> None:
    """Damage that still parses: wrong types, sizes, names, wiring, versions."""
    graph = model.graph
    node = rng.choice(graph.node)
    number = rng.choice([-(2**63), -1, 0, 1, 7, 2**31, 2**40, 2**63 - 1])
    kind = rng.randrange(9)
    if kind == 0:
        node.op_type = rng.choice(["Relu", "Conv", "Gather", "Loop", "Nope", "", "Reshape"])
    elif kind == 1 and node.attribute:
        attribute = rng.choice(node.attribute)
        attribute.i = number
        attribute.ints[:] = [number] * rng.randint(0, 5)
    elif kind == 2 and graph.initializer:
        rng.choice(graph.initializer).dims[:] = [rng.choice([-1, 0, 3, 2**40]) for _ in range(rng.randint(0, 5))]
    elif kind == 3 and graph.initializer:
        rng.choice(graph.initializer).data_type = rng.randrange(30)
    elif kind == 4 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(["", "nowhere", node.output[0]])
    elif kind == 5:
        model.opset_import[0].version = rng.choice([-1, 0, 1, 6, 13, 24, 2**40])
    elif kind == 6:
        del graph.node[rng.randrange(len(graph.node))]
    elif kind == 7:
        dims = graph.input[0].type.tensor_type.shape.dim
        dims[rng.randrange(len(dims))].dim_value = number
    else:
        graph.input[0].type.tensor_type.elem_type = rng.randrange(30)


MUTATIONS: tuple[Callable[[bytearray, random.Random], None], ...] = (_flip, _cut, _insert, _repeat)


def mutants(count: int) -> list[bytes]:
    """Damaged copies of small models, the same in every run."""
    rng = random.Random(SEED)
    sources = [model_zoo.conv_net(channels=4), model_zoo.embedding(), model_zoo.relu(), model_zoo.divides_int_min()]
    made = []
    for number in range(count):
        model = onnx.ModelProto()
        model.CopyFrom(rng.choice(sources))
        if number % 3:
            _change(model, rng)
            made.append(model.SerializeToString())
        else:
            data = bytearray(model.SerializeToString())
            rng.choice(MUTATIONS)(data, rng)
            made.append(bytes(data))
    return made


def _outcome(worker: Worker, op: str, path: Path) -> str:
    """`ok`, or the code of our error; anything else fails the test."""
    arm = Arm(artifact=str(path), target=Target("cpu", "cpu"), session=SessionSection(threads=1))
    measure = MeasureArguments(arm=arm_arguments(arm, None), warmup=0, iterations=1, duration_s=None, tracing=None)
    args = {"path": str(path)} if op == "graph.describe" else to_json(measure)
    try:
        worker.call(op, args, timeout_s=3)
    except ModelkitError as error:
        assert error.message
        assert error.exit_code in (1, 2, 3)
        return error.code
    return "ok"


@pytest.mark.parametrize("op", ["graph.describe", "session.measure"])
def test_damaged_models_are_answered_one_way_or_another(tmp_path: Path, op: str) -> None:
    path = tmp_path / "m.onnx"
    outcomes: dict[str, int] = {}
    worker = Worker()
    try:
        for data in mutants(MUTANTS):
            path.write_bytes(data or b"\0")
            if not worker.alive:
                worker.close()
                worker = Worker()
            code = _outcome(worker, op, path)
            outcomes[code] = outcomes.get(code, 0) + 1
    finally:
        worker.close()
    # The damage is real, and not all of it is fatal: otherwise this would test nothing.
    assert outcomes.get("ok", 0) > 5, outcomes
    assert outcomes.get("invalid-model", 0) > 20, outcomes


@pytest.mark.parametrize("command", ["inspect", "perf"])
def test_damaged_models_through_the_whole_program(tmp_path: Path, command: str) -> None:
    path = tmp_path / "m.onnx"
    words = ["--sessions", "1", "--iterations", "1", "--timeout", "5"] if command == "perf" else []
    for data in mutants(6):
        path.write_bytes(data)
        result = winml_process(command, "-m", path, *words)  # a crash of the program would end the tests, too
        assert result.returncode in (0, 1, 2), result.stderr
        assert "Traceback" not in result.stderr


INPUTS = 20
OF_WORKERS = ("model",)
"""Readers that start a process; the tests above read models."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in fuzz_readers.readers() if name not in OF_WORKERS])
def test_damaged_files_are_read_or_refused(tmp_path: Path, name: str) -> None:
    count = len(fuzz_readers.corpus(name)) + INPUTS
    answers = {fuzz_readers.answer(name, tmp_path, fuzz_readers.make(name, number)) for number in range(count)}
    assert answers <= {"read", "refused"}


@pytest.mark.parametrize("name", [name for name in fuzz_readers.readers() if name not in OF_WORKERS])
def test_a_seed_is_a_file_that_its_reader_reads(tmp_path: Path, name: str) -> None:
    """Otherwise damage to it would only ever be refused at the door."""
    assert "read" in {fuzz_readers.answer(name, tmp_path, data) for data in fuzz_readers.corpus(name)}


def test_what_once_ended_a_reader_is_kept() -> None:
    known = {name.replace(" ", "-").lower() for name in fuzz_readers.readers()}
    assert {folder.name for folder in fuzz_readers.CORPUS.iterdir()} <= known
