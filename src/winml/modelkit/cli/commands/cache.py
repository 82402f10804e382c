"""`winml cache`."""

from __future__ import annotations

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Group
from winml.modelkit.cli.options import HELP, examples, json_option


@click.group(
    "cache",
    help="The cache of stage results, in `$WINML_CACHE` or the platform's cache folder.",
    epilog=examples("winml cache size", "winml cache verify", "winml cache gc --max-size 10G --dry-run"),
    cls=Group,
    context_settings=HELP,
)
def command() -> None:
    pass


@command.command(
    "list",
    help="List stage results, last used first.",
    epilog=examples("winml cache list", "winml cache list --json"),
    context_settings=HELP,
)
@json_option
def listing(as_json: bool) -> None:
    from winml.modelkit.render.cache import list_text
    from winml.modelkit.store.cache_command import list_cache

    console.show_result(list_text, list_cache(), as_json=as_json)


@command.command(
    "size",
    help="Show how large the cache is.",
    epilog=examples("winml cache size"),
    context_settings=HELP,
)
@json_option
def size(as_json: bool) -> None:
    from winml.modelkit.render.cache import size_text
    from winml.modelkit.store.cache_command import measure_cache

    console.show_result(size_text, measure_cache(), as_json=as_json)


@command.command(
    "verify",
    help="Hash every object again; exit 5 when one was damaged and moved aside.",
    epilog=examples("winml cache verify", "winml cache verify --json"),
    context_settings=HELP,
)
@json_option
def verify(as_json: bool) -> None:
    from winml.modelkit.render.cache import verification_text
    from winml.modelkit.store.cache_command import verify_cache

    console.show_result(verification_text, verify_cache(), as_json=as_json)


@command.command(
    "gc",
    help="Remove unreferenced objects and, by limit, those not used recently.",
    epilog=examples("winml cache gc --max-size 10G --dry-run", "winml cache gc --older-than 30d"),
    context_settings=HELP,
)
@click.option("--max-size", metavar="SIZE", help="Keep at most this much, for example 500M or 10G.")
@click.option(
    "--older-than", metavar="AGE", help="Remove stage results not used for this long, for example 12h or 30d."
)
@click.option("--grace", metavar="AGE", help="Always keep what was used this recently (default 1h).")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@json_option
def gc(max_size: str | None, older_than: str | None, grace: str | None, dry_run: bool, as_json: bool) -> None:
    from winml.modelkit.cli.option_values import age_s, size_bytes
    from winml.modelkit.render.cache import collection_text
    from winml.modelkit.store.cache_command import collect_garbage

    result = collect_garbage(
        max_bytes=None if max_size is None else size_bytes(max_size),
        older_than_s=None if older_than is None else age_s(older_than),
        grace_s=None if grace is None else age_s(grace),
        dry_run=dry_run,
    )
    console.show_result(collection_text, result, as_json=as_json)
