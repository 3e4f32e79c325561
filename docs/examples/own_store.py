"""Bring your own store: three hooks make a provider, and the stack does the rest."""

from __future__ import annotations

from collections.abc import Sequence

from memsheaf.agent import inject
from memsheaf.providers.local import LocalStore
from memsheaf.stack import Filter, Hit, MemoryRecord, MemoryStack, Scope, finish, hookimpl


class Notebook:
    """Keeps memories in a dictionary and finds them by shared words."""

    scope_fields = frozenset({"user_id", "agent_id", "session_id", "namespace"})
    filters_natively = True

    def __init__(self) -> None:
        self._pages: dict[str, MemoryRecord] = {}

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> Sequence[Hit]:
        """Score by the number of shared words."""
        wanted = set(text.lower().split())
        hits = [
            (id, float(len(wanted & set(record.content.lower().split()))), None)
            for id, record in self._pages.items()
        ]
        found = [hit for hit in hits if hit[1] > 0]
        return finish(found, self._pages, scope, filters, limit)

    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        """Keep a record; the same id replaces."""
        self._pages[record.id] = record

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        """Delete a record of the scope."""
        held = self._pages.get(record_id)
        if held is None or not scope.matches(held.scope):
            return False
        del self._pages[record_id]
        return True


def main() -> None:
    """Stack the notebook with the built-in store."""
    with MemoryStack([LocalStore(), Notebook()], scope=Scope(user_id="mira")) as stack:
        receipt = stack.store("Mira plays the cello")
        print([f"{outcome.provider}: {outcome.status}" for outcome in receipt.outcomes])
        made = inject([{"role": "user", "content": "Who plays the cello?"}], stack)
        print([source.provider for hit in made.hits for source in hit.sources])
        report = stack.forget(receipt.id)
        print(f"forgotten: {report.forgotten}, verified: {report.verified}")


if __name__ == "__main__":
    main()
