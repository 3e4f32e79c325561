"""A provider on the bench: alone in a stack of its own, checked, counted, taken through a round."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from memsheaf.stack import (
    SCOPE_FIELDS,
    MemoryStack,
    MemsheafError,
    Mount,
    Outcome,
    Scope,
    StackSettings,
    Status,
    StoreFailed,
)
from memsheaf.stack.mount import Mounted

__all__ = ["COUNT_LIMIT", "Probe", "probe"]

COUNT_LIMIT = 10_000
"""Records are counted up to this number."""
_PAGE = 1_000
_FINE = (Status.OK, Status.SKIPPED)
_Step = tuple[str, tuple[Outcome, ...], str | None]


@dataclass(frozen=True, slots=True)
class Probe:
    """What was seen of one provider.

    Attributes:
        name: Its configured name.
        mode: How it is used; None where it cannot be mounted.
        check: Its health.
        records: How many it holds, `COUNT_LIMIT` at the most; None where it cannot list.
        steps: The steps of the round that went well.
        fault: What went wrong first, or None.
        elapsed: Seconds that the round took.
    """

    name: str
    mode: str | None
    check: Outcome
    records: int | None = None
    steps: tuple[str, ...] = ()
    fault: str | None = None
    elapsed: float = 0.0

    @property
    def health(self) -> str:
        """One word: ok, down, or how the check ended."""
        if self.check.status is Status.SKIPPED and self.check.reason == "it has no check":
            return "ok" if self.fault is None else "failed"
        return str(self.check.status)


def probe(mount: Mount, settings: StackSettings, *, round_trip: bool) -> Probe:
    """Look at one provider; closes it.

    Args:
        mount: The provider.
        settings: Its time limits.
        round_trip: Write, read and forget a memory in a scope that nobody else has.
    """
    name = mount.name or type(mount.provider).__name__
    try:
        stack = MemoryStack([mount], settings=settings)
    except MemsheafError as error:
        return Probe(
            name, None, Outcome(name, "check", Status.FAILED, str(error)), fault=str(error)
        )
    with stack:
        (mounted,), (check,) = stack.providers, stack.check()
        fault = mounted.down or (check.reason if check.status not in _FINE else None)
        if fault is not None:
            return Probe(name, str(mounted.mode), check, fault=fault)
        records = _count(stack, mounted)
        if not round_trip:
            return Probe(name, str(mounted.mode), check, records)
        done, spent = [], 0.0
        for step, outcomes, wrong in _round(stack, mounted):
            spent += sum(outcome.elapsed for outcome in outcomes)
            failed = next((str(o.reason or o.status) for o in outcomes if not o.complete), None)
            fault = failed or wrong
            if fault is not None:
                fault = f"{step}: {fault}"
                break
            done.append(step)
        return Probe(name, str(mounted.mode), check, records, tuple(done), fault, spent)


def _count(stack: MemoryStack, mounted: Mounted) -> int | None:
    if not mounted.has("list") or not mounted.mode.reads:
        return None
    found, after = 0, None
    while found < COUNT_LIMIT:
        page = stack.list(Scope.EVERYONE, _PAGE, after)
        if page.partial:
            return None
        found, after = found + len(page), page.next
        if after is None:
            break
    return found


def _round(stack: MemoryStack, mounted: Mounted) -> Iterator[_Step]:
    """The steps that its mode allows, each with what the provider did and what is wrong."""
    token = secrets.token_hex(8)
    scope = _private(mounted.pinned, token)
    text = f"doctor{token} writes, reads and forgets this line"
    if mounted.mode.writes:
        if scope is None:
            yield "write", (), "it is pinned to a whole scope, so no private one is left to try"
            return
        yield from _written(stack, mounted, scope, text)
    elif mounted.mode.reads:
        result = stack.search(text, scope or mounted.pinned, 1)
        yield "read", result.outcomes, None
    else:
        stack.user_context(text, scope or mounted.pinned)
        stack.system_prompt(scope or mounted.pinned)
        yield "context", (), None


def _written(stack: MemoryStack, mounted: Mounted, scope: Scope, text: str) -> Iterator[_Step]:
    try:
        receipt = stack.store(text, scope=scope)
    except StoreFailed as error:
        yield "write", error.outcomes, str(error)
        return
    yield "write", receipt.outcomes, None
    try:
        if mounted.mode.reads:
            result = stack.search(text, scope, 1)
            found = any(hit.record.content == text for hit in result)
            yield "read", result.outcomes, None if found else "it does not find what it was given"
    finally:  # whatever the reading brought, nothing is left behind
        report = stack.forget(receipt.id, scope)
    gone = not report.remaining and (report.verified or not mounted.mode.reads)
    yield "forget", (*report.outcomes, *report.checks), None if gone else "it is still there"


def _private(pinned: Scope | None, token: str) -> Scope | None:
    """A scope of nobody's within the pinned one, or None where that leaves no field free."""
    held = dict(pinned.set_fields()) if pinned is not None else {}
    free = next((name for name in SCOPE_FIELDS if name not in held), None)
    return None if free is None else Scope(**{**held, free: f"doctor-{token}"})
