"""What the commands share: scope options, the opened stack, outcomes as text and JSON."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from memsheaf.stack import SCOPE_FIELDS, Scope

from .terminal import safe, say

if TYPE_CHECKING:
    from memsheaf.stack import MemoryRecord, MemoryStack, Outcome

__all__ = [
    "FAILED",
    "NOTHING",
    "OK",
    "Opened",
    "code_of",
    "filters_of",
    "json_option",
    "opened",
    "outcome_json",
    "record_json",
    "refuse_if",
    "scope_of",
    "scope_options",
    "show_outcomes",
]

OK, NOTHING, FAILED = 0, 1, 2
Function = TypeVar("Function", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

_SCOPE = (
    ("--user", "user_id", "The person; your login name by default."),
    ("--agent", "agent_id", "The agent."),
    ("--session", "session_id", "The conversation."),
    ("--namespace", "namespace", "A tenant, project or other partition."),
)


def scope_options(
    *, everyone: bool, fields: Collection[str] = SCOPE_FIELDS
) -> Callable[[Function], Function]:
    """Adds the scope options; `everyone` only where a command reads."""

    def decorate(function: Function) -> Function:
        if everyone:
            flag = click.option("--everyone", is_flag=True, help="Read all owners' memories.")
            function = flag(function)
        for option, name, text in reversed(_SCOPE):
            if name in fields:
                function = click.option(option, name, metavar="ID", help=text)(function)
        return function

    return decorate


class Opened(NamedTuple):
    """A stack and the scope that this call means."""

    stack: MemoryStack
    scope: Scope


@contextmanager
def opened(
    user_id: str | None = None,
    agent_id: str | None = None,
    session_id: str | None = None,
    namespace: str | None = None,
    everyone: bool = False,
) -> Iterator[Opened]:
    """Open the configured stack.

    A field that is not given is the configuration's, and the user, where nobody is named, the
    login name. An empty text leaves a field out.
    """
    given = {
        "user_id": user_id,
        "agent_id": agent_id,
        "session_id": session_id,
        "namespace": namespace,
    }
    # What needs pydantic is imported here: options and help do not need it.
    from memsheaf.stack.config import load_config

    config = load_config()
    refuse_if(config.disabled)
    scope = scope_of(config.scope, everyone=everyone, **given)
    from memsheaf.stack import MemoryStack

    with MemoryStack.from_config(config) as stack:
        yield Opened(stack, scope)


def scope_of(configured: Scope | None, *, everyone: bool = False, **given: str | None) -> Scope:
    """The scope of a call: the configured one, or the login name, with the fields that are given.

    Args:
        configured: That of the configuration.
        everyone: Whether all owners are meant.
        given: Fields by name; None where an option is not there, an empty text leaves one out.
    """
    if everyone:
        if any(given.values()):
            raise click.UsageError(
                "--everyone cannot be narrowed; leave out the other scope options"
            )
        return Scope.EVERYONE
    base = configured or Scope(user_id=_login())
    fields: dict[str, str] = {str(name): value for name, value in base.set_fields().items()}
    fields.update({name: value for name, value in given.items() if value is not None})
    return Scope(**fields)


def refuse_if(disabled: bool) -> None:
    """End the command where everything is turned off."""
    if disabled:
        raise click.ClickException("MEMSHEAF_DISABLED is set; unset it to use the memory")


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "user"  # a container without a password file


def filters_of(
    kinds: Sequence[str], tags: Sequence[str], since: str | None = None, until: str | None = None
) -> dict[str, object] | None:
    """The filter of a command's options."""
    conditions = {"kinds": kinds, "tags_all": tags, "since": since, "until": until}
    return {name: value for name, value in conditions.items() if value} or None


def code_of(found: object, partial: bool) -> int:
    """The exit code of a reading: nothing found is no answer where some provider failed."""
    return OK if found else FAILED if partial else NOTHING


def record_json(record: MemoryRecord) -> dict[str, Any]:
    """A record as JSON."""
    return record.model_dump(mode="json")


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON."""
    return {
        "provider": outcome.provider,
        "operation": outcome.operation,
        "status": str(outcome.status),
        "reason": outcome.reason,
        "count": outcome.count,
        "elapsed": round(outcome.elapsed, 6),
        "partial": outcome.partial,
        "notes": list(outcome.notes),
    }


def show_outcomes(outcomes: Sequence[Outcome]) -> None:
    """What did not go well, on stderr, each once."""
    for text in dict.fromkeys(str(outcome) for outcome in outcomes if not outcome.complete):
        say(f"  ! {safe(text)}", error=True)
