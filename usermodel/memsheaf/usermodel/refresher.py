"""The refresh: batches of the queue go through a deriver, in the background or at once."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial

from memsheaf.models import AllModelsFailed, ModelError, ModelUnavailable
from memsheaf.sessionsearch import Item
from memsheaf.stack import MemsheafError, ProviderTimeout
from memsheaf.stack.workers import Workers

from .batches import Batch
from .deriver import Deriver, QuestioningDeriver
from .errors import DeriverFailed
from .operations import Operation
from .profile import Profile
from .queue import RefreshQueue
from .settings import RefreshSettings

__all__ = ["Refresher", "derive"]

_LOG = logging.getLogger("memsheaf.usermodel")
_LOOK = 0.05  # seconds between looks while waiting for somebody else
_PATIENCE = 5.0  # seconds for the watching thread to end


def derive(
    deriver: Deriver, profile: Profile, items: Sequence[Item], depth: int
) -> Sequence[Operation]:
    """Ask a deriver, and let it question its answer in each further pass."""
    operations = deriver.derive(profile, items)
    if isinstance(deriver, QuestioningDeriver):
        for _ in range(depth - 1):
            operations = deriver.question(profile, operations, items)
    return list(operations)


class Refresher:
    """Takes batches from a queue and settles them.

    One thread watches the queue and gives what is due to a few workers, so that users are served
    in parallel and each in order; it also keeps the leases of what is being derived.

    Args:
        queue: The queue.
        load: Returns the deriver; called when it is first needed.
        settings: Workers, leases and waits.
        depth: How many passes a derivation has.
        background: Whether to start the threads; without them, `refresh` and `flush` work.
    """

    def __init__(
        self,
        queue: RefreshQueue,
        load: Callable[[], Deriver],
        settings: RefreshSettings,
        *,
        depth: int,
        background: bool,
    ) -> None:
        self._queue, self._load, self._settings = queue, load, settings
        self._depth, self.background = depth, background
        self._watching: str | None = None
        self._settling: str | None = None
        self._reset()
        self.notice()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._awake = False
        self._stopping = False
        self._running: dict[str, tuple[Batch, float]] = {}
        self._watcher: threading.Thread | None = None
        self._workers = Workers("user-model", self._settings.workers)

    @property
    def trouble(self) -> str | None:
        """What is wrong with the background work itself, apart from any batch."""
        return self._settling or self._watching

    def wake(self) -> None:
        """Look at the queue now."""
        if self._process != os.getpid():
            self._reset()  # a fork has neither the threads nor the batches of its parent
        with self._changed:
            self._awake = True
            if self._watcher is None and not self._stopping:
                self._watcher = threading.Thread(
                    target=_watch,
                    args=(weakref.ref(self),),
                    name="memsheaf-user-model",
                    daemon=True,
                )
                self._watcher.start()
            self._changed.notify_all()

    def notice(self) -> None:
        """Something new waits: look at the queue, if that is this process's task."""
        if self.background:
            self.wake()

    def refresh(self, user_id: str, timeout: float) -> None:
        """Derive all that waits of one user, in this thread.

        Raises:
            DeriverFailed: The deriver raised; the profile is as it was.
            ProviderTimeout: Another thread or process derives a batch of this user.
        """
        until = time.monotonic() + timeout
        while (batch := self._queue.claim_user(user_id)) is not None:
            if isinstance(batch, Batch):
                self._run(batch)
            elif time.monotonic() < until:
                self._wait(_LOOK)
            else:
                raise ProviderTimeout(
                    "a batch of this user is being derived elsewhere; try again later"
                )

    def flush(self, user_id: str | None, timeout: float) -> bool:
        """Derive what waits, without waiting for its time; False where something still waits.

        What failed waits for its next try, if that is not within the timeout.
        """
        until = time.monotonic() + timeout
        self._queue.hurry(user_id)
        self.notice()
        while (left := self._queue.unfinished(user_id)).ready and time.monotonic() < until:
            batch = None if self.background else self._next(user_id)
            if batch is None:
                self._wait(_LOOK)
            else:
                self._run_quietly(batch)
        return not left.waiting

    def _next(self, user_id: str | None) -> Batch | None:
        found = self._queue.claim() if user_id is None else self._queue.claim_user(user_id)
        return found if isinstance(found, Batch) else None

    def close(self) -> None:
        """Stop; batches that are being derived are given back, to be derived again."""
        if self._process != os.getpid():
            self._reset()
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            given_back = [batch for batch, _ in self._running.values()]
            watcher = self._watcher
        if watcher is not None:
            watcher.join(_PATIENCE)
        self._workers.close()
        if given_back:
            self._queue.release(given_back)

    def step(self) -> bool:
        """One round of the watching thread; False to end it."""
        with self._changed:
            if self._stopping:
                return False
            self._awake = False
        wait = self._settings.poll
        try:
            hanging = self._keep_leases()
            if self.background:
                wait = self._hand_out()
            self._watching = f"{hanging} derivations hang in this process" if hanging else None
        except MemsheafError as error:  # shown by the status; the queue is looked at again
            self._watching = str(error)
        with self._changed:
            if self._running:
                wait = min(wait, self._settings.lease / 3)
            elif not self.background:  # it only kept leases
                self._watcher = None
                return False
            if not self._awake and not self._stopping:
                self._changed.wait(wait)
            return not self._stopping

    def _hand_out(self) -> float:
        """Start what is due; returns the seconds until the next look."""
        while len(self._running) < self._settings.workers:
            batch = self._queue.claim()
            if batch is None:
                due = self._queue.seconds_to_next()
                return self._settings.poll if due is None else min(self._settings.poll, due)
            self._begin(batch)
            try:
                self._workers.submit(partial(self._run_quietly, batch))
            except RuntimeError:  # the process is ending and starts no more threads
                self._run_quietly(batch)
        return self._settings.poll

    def _begin(self, batch: Batch) -> None:
        with self._changed:
            self._running[batch.lease] = (batch, time.monotonic())

    def _keep_leases(self) -> int:
        """Renew what is being derived; what hangs loses its lease. Returns how many hang."""
        oldest = time.monotonic() - self._settings.derive_seconds
        running = list(self._running.values())
        alive = [batch for batch, started in running if started > oldest]
        if alive:
            self._queue.renew(alive)
        return len(running) - len(alive)

    def _run_quietly(self, batch: Batch) -> None:
        """Run a batch in the background: what failed is shown by the status."""
        try:
            self._run(batch)
            self._settling = None
        except DeriverFailed:
            return  # the queue holds the reason
        except MemsheafError as error:
            self._settling = str(error)

    def _run(self, batch: Batch) -> None:
        """Derive and settle a batch, while its lease is kept.

        Raises:
            DeriverFailed: The deriver raised; the batch waits for its next try.
        """
        self._begin(batch)
        self.wake()
        try:
            try:
                deriver = self._load()
                operations = derive(deriver, batch.profile, batch.items, self._depth)
            except Exception as error:
                reason = _reason(error)
                self._queue.fail(batch, reason, outage=_is_outage(error))
                raise DeriverFailed(
                    "the deriver failed, the profile is as it was, and the items are tried again: "
                    + reason
                ) from error
            except BaseException:  # an interrupt is no fault of the batch
                self._queue.release([batch])
                raise
            settled = self._queue.settle(batch, operations, deriver.name)
            for rejection in settled.rejections if settled else ():
                _LOG.info("an operation of %s was rejected: %s", deriver.name, rejection.reason)
        finally:
            with self._changed:
                self._running.pop(batch.lease, None)
                self._awake = True
                self._changed.notify_all()

    def _wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait(seconds)


def _watch(reference: weakref.ref[Refresher]) -> None:
    """Watch as long as the refresher is in use."""
    while (refresher := reference()) is not None and refresher.step():
        del refresher


def _is_outage(error: Exception) -> bool:
    """Whether the model could not be reached, which is no fault of what it was asked."""
    if isinstance(error, AllModelsFailed):
        return all(isinstance(each, ModelUnavailable) for _, each in error.failures)
    return isinstance(error, ModelUnavailable)


def _reason(error: Exception) -> str:
    """What is told of an error: our own messages hold no text of the user, others may."""
    if isinstance(error, MemsheafError | ModelError):
        return f"{type(error).__name__}: {error}"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" in line {trace.tb_lineno} of {trace.tb_frame.f_code.co_name}" if trace else ""
    return f"{type(error).__name__}{where}"
