"""The one seam through which every write reaches the providers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from .fanout import Answer, FanOut, Request
from .results import Operation, Outcome

__all__ = ["Delivery", "DirectDelivery"]


class Delivery(Protocol):
    """Carries writes to providers."""

    def write(
        self,
        operation: Operation,
        requests: Sequence[Request],
        settled: Callable[[Answer], None],
    ) -> list[Answer]:
        """Make the writes.

        Args:
            operation: What is written.
            requests: One per provider.
            settled: Told of every write that ended well, however late.

        Returns:
            One answer per request, in their order.
        """

    def late(self) -> tuple[Outcome, ...]:
        """How writes ended that had been given up as timed out, the last of them at the end."""

    def going(self, record_ids: Collection[str]) -> frozenset[str]:
        """Providers that may yet write one of these records."""


class DirectDelivery:
    """Calls the providers at once; a write that is given up is watched until it ends."""

    def __init__(self, fanout: FanOut, timeout: float, deadline: float) -> None:
        self._fanout = fanout
        self._timeout = timeout
        self._deadline = deadline
        self._late: deque[Outcome] = deque(maxlen=1_000)
        self._going: dict[int, Request] = {}

    def write(
        self,
        operation: Operation,
        requests: Sequence[Request],
        settled: Callable[[Answer], None],
    ) -> list[Answer]:
        """See `Delivery.write`."""

        def ended_late(answer: Answer) -> None:
            try:
                if answer.outcome.ok:
                    settled(answer)
            finally:  # told last: whoever reads it may rely on the ids that it became
                self._going.pop(id(answer.request), None)
                self._late.append(answer.outcome)

        self._going |= {id(request): request for request in requests}
        given_up: set[int] = set()
        try:
            answers = self._fanout.run(
                operation,
                requests,
                timeout=self._timeout,
                deadline=time.monotonic() + self._deadline,
                late=ended_late,
            )
            given_up = {id(a.request) for a in answers if a.given_up}
        finally:
            for request in requests:
                if id(request) not in given_up:
                    self._going.pop(id(request), None)
        for answer in answers:
            if answer.outcome.ok:
                settled(answer)
        return answers

    def late(self) -> tuple[Outcome, ...]:
        """See `Delivery.late`."""
        return tuple(self._late)

    def going(self, record_ids: Collection[str]) -> frozenset[str]:
        """See `Delivery.going`."""
        wanted = {*record_ids}
        writes = [request for request in list(self._going.values()) if request.hook != "forget"]
        return frozenset(r.mounted.name for r in writes if not wanted.isdisjoint(_record_ids(r)))


def _record_ids(request: Request) -> list[str]:
    """Of the records that a write brings."""
    given = request.arguments
    if "record_id" in given:
        return [given["record_id"]]
    return [record.id for record in given.get("records", (given.get("record"),)) if record]
