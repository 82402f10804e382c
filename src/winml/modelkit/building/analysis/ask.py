"""Worker operation: open a model on a target to see which nodes its EP takes.

Runs in the environment of the EP, so it imports nothing that needs onnx; the EP's reasons are in the worker's log.
"""

from __future__ import annotations

from typing import Any

from winml.modelkit.building.analysis.result import AskedNode, AskedVersions, EPAnswer
from winml.modelkit.core.values import read
from winml.modelkit.ep.discovery import distribution_version
from winml.modelkit.session import environment
from winml.modelkit.session.arm import ArmArguments
from winml.modelkit.session.session import WinMLSession


def ask(args: dict[str, Any], context: object) -> EPAnswer:
    """What the session that `args` describe shows of its EP."""
    arm = read(ArmArguments, args)
    session = WinMLSession(
        arm.model, target=arm.target, section=arm.session, distribution=arm.distribution, asking=True
    )
    with session:
        known = environment.environment(session.target.ep, distribution_version(session.package))
        return EPAnswer(
            nodes=tuple(
                AskedNode(name=node.name, op=node.op, ep=node.ep, partition=node.partition)
                for node in session.list_nodes()
            ),
            provider_options=session.provider_options,
            added_options=session.added_options,
            environment=AskedVersions(runtime=known.runtime, ep=known.ep),
        )
