"""The text of `winml skill`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.table import table

if TYPE_CHECKING:
    from winml.modelkit.knowledge.skill_command import SkillCheck


def skills_text(result: SkillCheck) -> str:
    """One line per skill with what was checked in it."""
    rows = [("skill", "pages", "commands", "fields")]
    rows += [(str(s.name), str(s.pages), str(s.commands), str(s.fields)) for s in result.skills]
    return table(rows, right=frozenset({1, 2, 3}), head=True)


def problems_text(result: SkillCheck) -> str:
    """One line per problem, as editors and CI read it."""
    return "\n".join(f"{p.file}:{p.line}: {p.message}" for p in result.problems)
