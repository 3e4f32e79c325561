"""The fan-out: every provider is called by itself, at once, under time limits."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import CoroutineType
from typing import Any

from .breaker import Breaker
from .errors import ClosedError, MemsheafError, ProviderError
from .mount import Mounted, NotConcerned
from .results import Operation, Outcome, Status
from .workers import Call, LoopThread, Workers

__all__ = ["Accepted", "Answer", "FanOut", "Request", "mark_partial", "reason_of"]


@dataclass(slots=True)  # frozen would make it three times as slow to build
class Accepted:
    """A provider's answer after it was checked."""

    value: Any = None
    count: int = 0
    notes: tuple[str, ...] = ()
    partial: bool = False


_marks: ContextVar[list[str] | None] = ContextVar("memsheaf_partial", default=None)


def mark_partial(reason: str) -> None:
    """Say, from inside a hook, that the answer is not whole; its outcome will tell.

    Args:
        reason: What is missing, without memory text.
    """
    marks = _marks.get()
    if marks is not None:
        marks.append(reason)


@dataclass(slots=True)
class Request:
    """One call to make.

    Attributes:
        mounted: Whom to ask.
        hook: Which hook; None where `skip` says why it is not asked.
        arguments: All arguments of the hook; those that it declares are passed.
        accept: Checks the answer, on the provider's thread.
        skip: Why it is not asked.
    """

    mounted: Mounted
    hook: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    accept: Callable[[Any], Accepted] = Accepted
    skip: str | None = None


@dataclass(slots=True)
class Answer:
    """What came of a request."""

    request: Request
    outcome: Outcome
    value: Any = None
    given_up: bool = False


class _Runner:
    """A provider's threads and loop."""

    def __init__(self, name: str, size: int) -> None:
        self.workers = Workers(name, size)
        self.loop = LoopThread(name)

    def close(self) -> None:
        self.workers.close()
        self.loop.close()


class FanOut:
    """Calls providers in parallel.

    Args:
        workers: Threads per provider.
        failures: Failures in a row, per provider and operation, that open its breaker.
        pause: Seconds until an open breaker lets one call through.
    """

    def __init__(self, workers: int = 4, failures: int = 5, pause: float = 30.0) -> None:
        self._workers = workers
        self._runners: dict[str, _Runner] = {}
        self._limits = (failures, pause)
        self._breakers: dict[tuple[str, Operation], Breaker] = {}

    def run(
        self,
        operation: Operation,
        requests: Sequence[Request],
        *,
        timeout: float,
        deadline: float,
        late: Callable[[Answer], None] | None = None,
    ) -> list[Answer]:
        """Make the calls and wait until each has ended or run out of time.

        Args:
            operation: The operation of the outcomes; each has its own breaker per provider.
            requests: The calls.
            timeout: Seconds for a call whose provider sets no timeout of its own.
            deadline: The moment, by `time.monotonic`, at which waiting ends for all of them.
            late: Told when a call ends that had been given up while it ran.

        Returns:
            One answer per request, in their order.
        """
        answers: dict[int, Answer] = {}
        pooled: dict[int, tuple[Call, float]] = {}
        inline: list[int] = []
        ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        start = time.monotonic()
        for place, request in enumerate(requests):
            refused = self._refusal(operation, request)
            if refused is not None:
                answers[place] = refused
            elif self._is_inline(request):
                inline.append(place)
            else:
                limit = request.mounted.timeout or timeout
                due = min(start + limit, deadline)
                try:
                    call = self._start(request, due - start)
                except ClosedError:
                    answers[place] = _answer(request, operation, Status.SKIPPED, "it is closed")
                    continue
                except RuntimeError as error:  # the system gives no thread
                    answers[place] = self._failure(operation, request, error, 0.0)
                    continue
                pooled[place] = (call, due)
                call.when_ended(lambda _, place=place: ended.put(place))  # type: ignore[misc]
        if pooled and inline:
            time.sleep(0)  # the interpreter to the threads, so that these do not hold them up
        for place in inline:
            limit = min(requests[place].mounted.timeout or timeout, deadline - start)
            answers[place] = self._run_inline(operation, requests[place], limit)
        while pooled:
            place = self._next(pooled, ended)
            call, due = pooled.pop(place)
            answers[place] = self._settle(operation, requests[place], call, due - start, late)
        return [answers[place] for place in range(len(requests))]

    def reset(self, name: str) -> None:
        """Close a provider's breakers, after it was opened again."""
        for (provider, _), breaker in list(self._breakers.items()):
            if provider == name:
                breaker.reset()

    def close(self) -> None:
        """Let the threads end."""
        for runner in list(self._runners.values()):
            runner.close()

    def _runner(self, name: str) -> _Runner:
        runner = self._runners.get(name)
        if runner is None:
            runner = self._runners.setdefault(name, _Runner(name, self._workers))
        return runner

    def _breaker(self, operation: Operation, request: Request) -> Breaker:
        key = (request.mounted.name, operation)
        return self._breakers.get(key) or self._breakers.setdefault(key, Breaker(*self._limits))

    def _refusal(self, operation: Operation, request: Request) -> Answer | None:
        mounted = request.mounted
        if mounted.down is not None:
            return _answer(request, operation, Status.FAILED, f"down: {mounted.down}")
        if request.skip is not None or request.hook is None:
            skipped = _answer(request, operation, Status.SKIPPED, request.skip)
            if isinstance(request.skip, NotConcerned):
                return replace(skipped, outcome=replace(skipped.outcome, concerned=False))
            return skipped
        refused = self._breaker(operation, request).refuses()
        if refused is not None:
            return _answer(request, operation, Status.SKIPPED, refused)
        return None

    @staticmethod
    def _is_inline(request: Request) -> bool:
        assert request.hook is not None
        return request.mounted.inline and not request.mounted.hooks[request.hook].is_async

    def _start(self, request: Request, limit: float) -> Call:
        workers = self._runner(request.mounted.name).workers
        return workers.submit(lambda: self._make(request, limit))

    def _make(self, request: Request, limit: float) -> Accepted:
        """Call the hook, check its answer, and add what it said of itself."""
        assert request.hook is not None
        hook = request.mounted.hooks[request.hook]
        marks: list[str] = []
        token = _marks.set(marks)
        try:
            result = hook.function(**hook.bind(request.arguments))
            if isinstance(result, CoroutineType):
                result = self._runner(request.mounted.name).loop.run(result, limit)
            accepted = request.accept(result)
        finally:
            _marks.reset(token)
        if not marks:
            return accepted
        return replace(accepted, partial=True, notes=(*accepted.notes, *marks))

    def _run_inline(self, operation: Operation, request: Request, limit: float) -> Answer:
        start = time.monotonic()
        try:
            accepted = self._make(request, limit)
        except KeyboardInterrupt:
            raise  # on this thread it is the user's
        except BaseException as error:  # whatever else a provider raises is its own failure
            return self._failure(operation, request, error, time.monotonic() - start)
        return self._success(operation, request, accepted, time.monotonic() - start)

    @staticmethod
    def _next(pooled: Mapping[int, tuple[Call, float]], ended: queue.SimpleQueue[int]) -> int:
        """The next place that has ended or is due."""
        while True:
            place, (_, due) = min(pooled.items(), key=lambda item: item[1][1])
            try:
                done = ended.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                return place
            if done in pooled:
                return done

    def _settle(
        self,
        operation: Operation,
        request: Request,
        call: Call,
        limit: float,
        late: Callable[[Answer], None] | None,
    ) -> Answer:
        was = call.give_up()
        if was == "ended":
            return self._ended(operation, request, call)
        self._breaker(operation, request).failed()
        if was == "waiting":
            reason = f"busy: no free worker within {limit:.3g} s"
            return _answer(request, operation, Status.BUSY, reason, elapsed=limit)
        if late is not None:
            call.when_ended(lambda call: late(self._ended(operation, request, call)))
        reason = f"timed out after {limit:.3g} s"
        answer = _answer(request, operation, Status.TIMED_OUT, reason, elapsed=limit)
        return replace(answer, given_up=True)

    def _ended(self, operation: Operation, request: Request, call: Call) -> Answer:
        if call.error is not None:
            return self._failure(operation, request, call.error, call.elapsed)
        return self._success(operation, request, call.result, call.elapsed)

    def _success(
        self, operation: Operation, request: Request, accepted: Accepted, elapsed: float
    ) -> Answer:
        self._breaker(operation, request).succeeded()
        outcome = Outcome(
            request.mounted.name,
            operation,
            Status.OK,
            count=accepted.count,
            elapsed=elapsed,
            notes=accepted.notes,
            partial=accepted.partial,
        )
        return Answer(request, outcome, accepted.value)

    def _failure(
        self, operation: Operation, request: Request, error: BaseException, elapsed: float
    ) -> Answer:
        breaker = self._breaker(operation, request)
        if isinstance(error, MemsheafError) and not isinstance(error, ProviderError):
            breaker.succeeded()  # it answered: the record or query was at fault, not the provider
        else:
            breaker.failed()
        status = Status.TIMED_OUT if isinstance(error, TimeoutError) else Status.FAILED
        return _answer(request, operation, status, reason_of(error), elapsed=elapsed, error=error)


def reason_of(error: BaseException) -> str:
    """Say why a call failed without memory text, which a foreign message may hold."""
    if isinstance(error, MemsheafError):
        return str(error)
    if isinstance(error, TimeoutError):
        return "timed out"
    kind = type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        return f"{kind}: {error.strerror}"
    return f"{kind} (its message is withheld, see Outcome.error)"


def _answer(
    request: Request,
    operation: Operation,
    status: Status,
    reason: str | None,
    *,
    elapsed: float = 0.0,
    error: BaseException | None = None,
) -> Answer:
    name = request.mounted.name
    return Answer(
        request, Outcome(name, operation, status, reason, elapsed=elapsed, error=error), None
    )
