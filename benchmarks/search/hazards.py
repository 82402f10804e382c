"""What real hazards cost a search: a config that crashes, one that hangs, one 50 times slower, one that is wrong.

    python benchmarks/search/hazards.py

The models are made so that the hazard happens in the runtime; guards, workers and watchdog are those of a search.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "tests"), str(Path(__file__).parents[2] / "src")]


from model_zoo import saved, text_model  # noqa: E402
from winml.modelkit.building.pipeline.artifact import read_source  # noqa: E402
from winml.modelkit.core.config import SCHEMA, DataSection, config_from_json  # noqa: E402
from winml.modelkit.core.knob import Knob, Level  # noqa: E402
from winml.modelkit.core.trust import OWN_REQUEST  # noqa: E402
from winml.modelkit.ep import probing as targets  # noqa: E402
from winml.modelkit.graph.input_settings import InputSettings  # noqa: E402
from winml.modelkit.measuring.protocols import PROTOCOLS  # noqa: E402
from winml.modelkit.search.events import TrialEnded  # noqa: E402
from winml.modelkit.search.gate import Gate, GateRequest  # noqa: E402
from winml.modelkit.search.guards import Built  # noqa: E402
from winml.modelkit.search.space import Space  # noqa: E402
from winml.modelkit.search.strategy import SearchPlan, choose_champion  # noqa: E402
from winml.modelkit.search.study import Study  # noqa: E402
from winml.modelkit.search.tools import SearchSubject, Workbench  # noqa: E402
from winml.modelkit.search.trial import TrialArtifact, Yardstick  # noqa: E402

LIMIT_S = 15.0
SQUARE = "float[64,64]"
SIGNATURE = f"({SQUARE} x, {SQUARE} w) => ({SQUARE} y)"


def _chain(name: str, steps: int, *, wrong: bool = False) -> str:
    """Products of the input with a matrix, `steps` times, which hardly change it."""
    lines = [f"v0 = {'Neg' if wrong else 'Identity'}(x)"]
    for i in range(steps):
        lines += [f"m{i} = MatMul(v{i}, w)", f"v{i + 1} = Tanh(m{i})"]
    body = "\n".join(lines)
    return f"{name} {SIGNATURE} {{ {body}\ny = Identity(v{steps}) }}"


HANG = f"""hang {SIGNATURE} <int64 trips = {{9223372036854775807}}, bool cond = {{1}}>
{{ y = Loop (trips, cond, x) <body = b (int64 i, bool keep_in, {SQUARE} v) => (bool keep, {SQUARE} o)
    {{ keep = Identity(keep_in)  o = Sin(v) }}> }}"""
CRASH = f"""crash {SIGNATURE} <int32[1] lowest = {{-2147483648}}, int32[1] minus = {{-1}}>
{{ s = Cast <to = 6> (x)  r = ReduceMax <keepdims = 0> (s)  z = Sub(r, r)  a = Add(lowest, z)  b = Add(minus, z)
   d = Div(a, b)  f = Cast <to = 1> (d)  y = Add(x, f) }}"""
MODELS = {
    "default": _chain("base", 4),
    "faster": _chain("faster", 3),
    "crash": CRASH,
    "hang": HANG,
    "slow": _chain("slow", 200),
    "wrong": _chain("wrong", 3, wrong=True),
}


class Rigged(Workbench):
    """Builds are files made beforehand; everything after them is real."""

    files: dict[str, Path]

    def build(self, config: dict) -> Built:
        path = self.files[config["precision"]]
        known = self._describe(str(path), path)
        identity = str(path)
        self._specs[identity] = self._spec(config_from_json(config, OWN_REQUEST), path)
        artifact = TrialArtifact(digest=identity, fingerprint=known.fingerprint, bytes=path.stat().st_size)
        return Built(path=str(path), identity=identity, target="cpu", artifact=artifact)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {kind: saved(text_model(body), folder / f"{kind}.onnx") for kind, body in MODELS.items()}
        base = {"schema": SCHEMA, "target": "cpu", "precision": "default", "session": {"threads": 1}}
        subject = SearchSubject(
            source=read_source(files["default"], ()),
            targets={"cpu": targets.resolve("cpu", None, None)},
            baseline=base,
            calibration=None,
            inputs=InputSettings(),
            objective="latency",
            protocol=PROTOCOLS["cpu"],
        )
        gate = Gate(GateRequest(DataSection("random", limit=4), "outputs", min_agreement=0.9), folder, folder)
        bench = Rigged(subject, gate, folder, keep=lambda *_: None, on_event=lambda event: None)
        bench.files = files
        levels = tuple(Level(kind, {"precision": kind}) for kind in MODELS if kind != "default")
        plan = SearchPlan(Space((Knob("kind", levels),), base), Yardstick(PROTOCOLS["cpu"]))
        study = Study(plan, bench, append=lambda record: None, on_event=_tell)
        started = time.monotonic()
        study.run()
        bench.close()
        best = choose_champion(study.state)
        costs = {t.choice[0][1]: t.seconds for t in study.state.trials[1:] if not t.works}
        print(f"champion {best.label} after {time.monotonic() - started:.0f} s; hazards cost {costs}")
        assert best.choice == (("kind", "faster"),)
        assert set(costs) == {"crash", "hang", "slow", "wrong"}
        assert max(costs.values()) <= LIMIT_S, f"more than {LIMIT_S} s: {costs}"


def _tell(event: object) -> None:
    if isinstance(event, TrialEnded):
        trial = event.trial
        print(f"{trial.id} {trial.label} {trial.outcome} {trial.seconds:.1f} s {trial.reason}", flush=True)


if __name__ == "__main__":
    main()
