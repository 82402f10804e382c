"""Which session settings a document may hold: those that the table of EPs lists as harmless, and no others.

Some options name libraries that are loaded or files that are written; those count only on the command line.
`--trust-options` names exceptions, and each one that is used is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import near_names
from winml.modelkit.ep import catalog

OPTION = "--trust-options"


@dataclass(frozen=True)
class Used:
    """A setting of a document that was let through because the command line names it."""

    source: str
    name: str
    value: str

    def __str__(self) -> str:
        return f"trusted from `{self.source}`: {self.name}={self.value}"


@dataclass(frozen=True)
class Trust:
    """Which settings of documents the command line trusts; by default none."""

    names: frozenset[str] = frozenset()
    """Settings that a document may choose anyway."""
    typed: frozenset[str] = frozenset()
    """Provider options that the user typed; what a document says of them is skipped."""
    on_use: Callable[[Used], None] = field(default=lambda used: None, compare=False)

    def with_typed(self, ep_options: Iterable[str]) -> Trust:
        """The same with the names of the provider options that this command was given."""
        return replace(self, typed=self.typed | frozenset(ep_options))

    def without_typed(self, ep_options: Mapping[str, str]) -> dict[str, str]:
        """The options of a document without those that the user typed, whose values come from the command line."""
        return {name: value for name, value in ep_options.items() if name not in self.typed}

    def gate(self, source: str) -> DocumentGate:
        """What decides on the settings of the document `source`."""
        return DocumentGate(source, self)


NOTHING = Trust()


@dataclass(frozen=True)
class DocumentGate:
    """Holds the settings of one document against the table."""

    source: str
    trust: Trust

    def check_option(self, name: str, value: str, where: str) -> None:
        found = [info.options[name] for info in catalog.TABLE if name in info.options]
        if not found:
            near = near_names(name, {n for info in catalog.TABLE for n in info.options})
            raise RequestError(f"`{where}.{name}` is an option of no execution provider", hint=near or catalog.LIST)
        if not all(option.allows_in_document(value) for option in found):
            self._require_trust(name, value, where, f"or pass it yourself: `--ep-options {name}=VALUE`")

    def check_entry(self, name: str, value: str, where: str) -> None:
        if name not in catalog.DOCUMENT_ENTRIES:
            known = f"a document may set {', '.join(f'`{n}`' for n in near_entries(name))}"
            self._require_trust(name, value, where, known)

    def _require_trust(self, name: str, value: str, where: str, otherwise: str) -> None:
        if name not in self.trust.names:
            raise RequestError(
                f"`{where}.{name}` may be set on the command line only, because it names a library or a file or makes "
                f"the provider write one: `{value[:200]}`",
                hint=f"add `{OPTION} {name}` if you trust that value, {otherwise}",
            )
        self.trust.on_use(Used(self.source, name, value))


def option_to_repeat(ep_options: Mapping[str, str], trust: Trust) -> str:
    """The option by which a command takes what it made with these options and this trust; empty when it needs none."""
    refused = {
        name
        for name, value in ep_options.items()
        for info in catalog.TABLE
        if name in info.options and not info.options[name].allows_in_document(value)
    }
    names = sorted(refused | trust.names)
    return f" {OPTION} {','.join(names)}" if names else ""


def near_entries(name: str) -> list[str]:
    """Config entries that a document may set, those of the same family first."""
    family = name.partition(".")[0]
    return sorted(catalog.DOCUMENT_ENTRIES, key=lambda entry: (entry.partition(".")[0] != family, entry))[:3]


def read_names(words: Iterable[str]) -> frozenset[str]:
    """The names in values of `--trust-options`; raises for one that is neither an option nor a config entry."""
    names = {name.strip() for word in words for name in word.split(",") if name.strip()}
    known = {name for info in catalog.TABLE for name in info.options}
    for name in sorted(names):
        # Config entries are spelt `session.…`, `ep.…`, `optimization.…`; the runtime has no list of them.
        if name not in known and "." not in name:
            raise RequestError(
                f"`{OPTION}` names an unknown option `{name}`", hint=near_names(name, known) or catalog.LIST
            )
    return frozenset(names)
