"""Forget: delete every copy, then look again and report what is still seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from .core import Core, check_id
from .errors import ProviderError
from .fanout import Accepted, Answer
from .hits import accept_hits, accept_record
from .mount import Mounted
from .reading import Reader
from .records import MemoryRecord
from .relevance import query_terms
from .results import ForgetReport, Hit, Outcome, Status
from .scope import Scope
from .text import same_content_key

__all__ = ["Forgetter"]

_DEPTHS = (50, 400, 3_200)  # of a search for copies: hits, more where it does not reach the record
_PROBE = 2_000  # characters of the content that a search for its copies asks with


class Forgetter:
    """Deletes a record, and copies of its content in its scope, from every provider."""

    def __init__(self, core: Core, reader: Reader) -> None:
        self._core = core
        self._reader = reader

    def forget(self, record_id: str, scope: Scope | None) -> ForgetReport:
        """See `MemoryStack.forget`."""
        core = self._core
        core.ensure_open()
        check_id(record_id)
        asked = core.scope(scope)
        core.guard("before_forget", record_id=record_id, scope=asked)
        held, answers = self._reader.copies(record_id, asked)
        record = max(held, key=lambda copy: copy.updated_at, default=None)
        ids = [record_id]
        depths: dict[str, int] = {}
        if record is not None:
            holders = {a.outcome.provider for a in answers if a.value is not None}
            ids += sorted(self._copies(record, holders, depths) - {record_id})
        known = {target: self._known(target) for target in ids}  # a deletion drops them
        deleted: list[str] = []
        outcomes: dict[str, Outcome] = {}
        for target in ids:
            owner = asked if target == record_id or record is None else record.scope
            for answer in self._delete(target, owner, record):
                outcome = answer.outcome
                outcomes[outcome.provider] = _worse(outcomes.get(outcome.provider), outcome)
                if answer.value and target not in deleted:
                    deleted.append(target)
        remaining, unverified, checks = self._look_again(known, asked, record, depths)
        report = ForgetReport(
            record_id,
            bool(deleted) and not remaining,
            tuple(deleted),
            remaining,
            unverified,
            tuple(outcomes.values()),
            checks,
        )
        told = core.tell("after_forget", report=report)
        return replace(report, outcomes=report.outcomes + told) if told else report

    def _delete(self, target: str, scope: Scope, record: MemoryRecord | None) -> list[Answer]:
        core = self._core
        requests = []
        for m in core.mounted:
            if m.mode.writes:
                skip = m.cannot_answer(scope)
                if record is not None:
                    skip = skip or m.cannot_hold(record.scope)
                requests.append(
                    core.request(
                        m,
                        "forget",
                        _accept_deleted,
                        skip,
                        record_id=target,
                        scope=scope,
                        native_ids=core.native.native(m.name, target),
                    )
                )

        def settled(answer: Answer) -> None:
            if answer.value:
                core.native.drop(answer.outcome.provider, target)

        return core.delivery.write("forget", requests, settled)

    def _copies(
        self, record: MemoryRecord, holders: Collection[str], depths: dict[str, int]
    ) -> set[str]:
        """The ids of this content in its scope.

        A copy stands where the record stands: the search goes on until it reaches that.

        Args:
            record: The record.
            holders: Providers that hold it.
            depths: Gets how far the search had to go in them.
        """
        seen: list[tuple[str, Hit]] = []
        above = {*holders}
        for depth in _DEPTHS:
            if above:
                depths |= dict.fromkeys(above, depth)
                seen, answers = self._same_content(record, depths)
                scores = {name: hit.score for name, hit in seen if hit.record.id == record.id}
                above &= {a.outcome.provider for a in answers if _may_hide(a, scores)}
        return {hit.record.id for _, hit in seen}

    def _same_content(
        self, record: MemoryRecord, depths: Mapping[str, int]
    ) -> tuple[list[tuple[str, Hit]], list[Answer]]:
        """Where a search by its text shows this content in its scope: (provider, hit)."""
        core = self._core
        probe = record.content[: min(_PROBE, core.settings.query_limit)]
        if not query_terms(probe):
            probe = ""  # no search finds it by its text: the latest are looked through
        requests = [
            core.request(
                m,
                "search",
                accept_hits(m, record.scope, None, depths.get(m.name, _DEPTHS[0])),
                m.cannot_answer(record.scope),
                text=probe,
                scope=record.scope,
                limit=depths.get(m.name, _DEPTHS[0]),
                filters=None,
            )
            for m in core.mounted
            if m.has("search")
        ]
        answers = core.read("search", requests)
        key = same_content_key(record.content)
        found = []
        for answer in answers:
            for hit in answer.value[0] if answer.value is not None else ():
                provider = answer.outcome.provider
                ours = core.native.ours(provider, hit.native_ids or (hit.record.id,))
                if ours is not None and ours != hit.record.id:
                    copy = hit.record.model_copy(update={"id": ours})
                    hit = replace(hit, record=copy)
                same = hit.record.scope == record.scope
                if hit.record.id == record.id or (
                    same and same_content_key(hit.record.content) == key
                ):
                    found.append((provider, hit))
        return found, answers

    def _known(self, target: str) -> list[tuple[Mounted, str]]:
        """Under which ids each provider knows a record."""
        native = self._core.native.native
        getters = [m for m in self._core.mounted if m.has("get")]
        return [(m, each) for m in getters for each in native(m.name, target) or (target,)]

    def _look_again(
        self,
        known: Mapping[str, Sequence[tuple[Mounted, str]]],
        scope: Scope,
        record: MemoryRecord | None,
        depths: Mapping[str, int],
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Outcome, ...]]:
        """Ask by id, and by text where it is known; returns who still shows it, who cannot say."""
        core = self._core
        going = core.delivery.going(known)  # asked first: what ends from here on is seen
        answers = [
            answer
            for target, places in known.items()
            for answer in core.read(
                "get",
                [
                    core.request(
                        m,
                        "get",
                        accept_record(m, scope, (each, target)),
                        m.cannot_answer(scope),
                        record_id=each,
                        scope=scope,
                    )
                    for m, each in places
                ],
            )
        ]
        still = {a.outcome.provider for a in answers if a.value is not None}
        if record is not None:
            seen, by_text = self._same_content(record, depths)
            still |= {provider for provider, _ in seen}
            answers += by_text
        checks: dict[str, Outcome] = {}
        for answer in answers:
            outcome = answer.outcome
            checks[outcome.provider] = _worse(checks.get(outcome.provider), outcome)
        unverified = []
        for m in core.mounted:
            check = checks.get(m.name)
            stores = m.mode.reads or m.mode.writes
            skipped = check is not None and check.status is Status.SKIPPED
            if m.name in going:
                unverified.append(m.name)
            elif stores and not (check is not None and check.complete):
                reachable = not skipped or m.cannot_answer(scope) is None
                if reachable:
                    unverified.append(m.name)
        order = [m.name for m in core.mounted if m.name in still]
        return tuple(order), tuple(unverified), tuple(checks.values())


_RANK = (Status.OK, Status.SKIPPED, Status.BUSY, Status.TIMED_OUT, Status.FAILED)


def _worse(first: Outcome | None, second: Outcome) -> Outcome:
    """The worse of two outcomes of one provider, with both counts."""
    if first is None:
        return second
    worse = max(first, second, key=lambda outcome: _RANK.index(outcome.status))
    return replace(
        worse,
        count=first.count + second.count,
        elapsed=first.elapsed + second.elapsed,
        partial=first.partial or second.partial,
    )


def _may_hide(answer: Answer, scores: Mapping[str, float]) -> bool:
    """Whether an answer was cut before what scores as the record does."""
    if answer.value is None or not answer.value[1]:
        return False
    hits = answer.value[0]
    own = scores.get(answer.outcome.provider)
    return own is None or not hits or own <= hits[-1].score


def _accept_deleted(answer: object) -> Accepted:
    if not isinstance(answer, bool):
        raise ProviderError(f"forget returned {type(answer).__name__}, not True or False")
    return Accepted(answer, int(answer))
