"""The user model: the face of profiles, queue and derivation."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from memsheaf.models import ChatModel
from memsheaf.sessionsearch import Item
from memsheaf.stack import ClosedError, ConfigError, Registry

from .asking import Answer, answer, answer_with_model
from .batches import Handover
from .context import RankedCache, RankedLines
from .deriver import Deriver, load_deriver
from .editing import Editor, Forgotten
from .exporting import export_profile
from .profile import Line, LineKind, Profile
from .profiles import (
    Change,
    read_changes,
    read_forget_mark,
    read_profile,
    read_revision,
    read_users,
)
from .provider import UserModelProvider
from .queue import RefreshQueue
from .refresher import Refresher
from .rows import RowStore
from .settings import RefreshSettings
from .status import QueueStatus, read_status

__all__ = ["UserModel"]

MAX_TOKENS = 500


class UserModel:
    """What is known of each user, derived from what that user said, and traceable to it.

    Threads and processes may share the folder. What was handed over survives the end of the
    process at any moment and is derived exactly once.

    Args:
        path: The folder; made where it is missing. None: a temporary one.
        deriver: A deriver, or the name of one in `memsheaf.derivers`.
        depth: Passes of a derivation: from the second on, a deriver that can do so questions
            what the pass before proposed.
        settings: How refreshes are batched and tried.
        background: Whether this process derives in the background. Without it, items wait for
            `refresh`, `flush` or another process.
        timeout: Seconds to wait for another process that writes.
        clock: Unix time in seconds.

    Raises:
        RegistrationError: No deriver has this name.
        ConfigError: A setting is wrong.
        ProviderError: The folder cannot be used.

    >>> from memsheaf.sessionsearch import Item, ItemOrigin
    >>> from memsheaf.usermodel import Add, LineKind
    >>> class Echo:
    ...     name = "echo"
    ...     def derive(self, profile, items):
    ...         return [Add(LineKind.FACT, item.text, 0.9, (item.id,)) for item in items]
    >>> with UserModel(deriver=Echo()) as model:
    ...     said = Item("monday", 0, "message", "I play the cello", "user", ItemOrigin.USER)
    ...     _ = model.observe(said, user_id="mira")
    ...     print(model.refresh("mira").current[0].sources)
    ('monday:0',)
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        deriver: Deriver | str = "rules",
        depth: int = 1,
        settings: RefreshSettings | None = None,
        background: bool = True,
        timeout: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise ConfigError("depth must be a number of passes of at least 1")
        if isinstance(deriver, str):
            Registry("memsheaf.derivers").find(deriver)
        elif not isinstance(deriver, Deriver):
            raise ConfigError("deriver must have a name and derive(profile, items)")
        self._settings = settings or RefreshSettings()
        self._deriver = deriver
        self._lock = threading.Lock()
        self._prepared = RankedCache()
        self._closed = False
        folder = Path(path).expanduser() if path is not None else Path(tempfile.mkdtemp())
        self._temporary = (folder, os.getpid()) if path is None else None
        self._store = RowStore(folder, timeout)
        self._store.erase()  # a process may have ended between a forget and this
        self._queue = RefreshQueue(self._store, self._settings, clock)
        self._editor = Editor(self._store, self._queue, self._prepared, clock)
        self._refresher = Refresher(
            self._queue, self._load, self._settings, depth=depth, background=background
        )
        _open.add(self)

    def observe(self, items: Item | Iterable[Item], *, user_id: str) -> Handover:
        """Hand over what was said; it is durable when this returns, and derived later.

        Args:
            items: Items of a conversation log, all or none; an item that was handed over before
                is not taken again, and one that the user did not say is ignored.
            user_id: Whose words they are.

        Raises:
            QueueFull: The queue holds as many items as it may.
            ScopeError: The user has no usable id.
        """
        self._require_open()
        made = self._queue.put(user_id, [items] if isinstance(items, Item) else items)
        if made.accepted:
            self._refresher.notice()
        return made

    def end_session(self, user_id: str) -> None:
        """Have what waits of a user derived now, in the background."""
        self._require_open()
        self._queue.hurry(user_id)
        self._refresher.notice()

    def refresh(self, user_id: str, *, timeout: float = 60.0) -> Profile:
        """Derive all that waits of a user, in this thread, and return the profile.

        Raises:
            DeriverFailed: The deriver raised; the profile is as it was.
            ProviderTimeout: Another process derives a batch of this user.
        """
        self._require_open()
        self._refresher.refresh(user_id, timeout)
        return self.profile(user_id)

    def flush(self, timeout: float = 60.0, *, user_id: str | None = None) -> bool:
        """Derive what waits now, of one user or of all; False where something still waits."""
        self._require_open()
        return self._refresher.flush(user_id, timeout)

    def retry(self, user_id: str) -> int:
        """Queue again what was set aside; returns how many items."""
        self._require_open()
        count = self._queue.retry(user_id)
        self._refresher.notice()
        return count

    def profile(self, user_id: str) -> Profile:
        """What is known of a user; an empty profile where nothing is."""
        user = self._queue.name_of(user_id)
        with self._store.reading() as rows:
            return read_profile(rows, user, user_id)[0]

    def history(self, user_id: str) -> tuple[Change, ...]:
        """Every change of a user's profile, oldest first."""
        user = self._queue.name_of(user_id)
        with self._store.reading() as rows:
            return tuple(read_changes(rows, user, read_profile(rows, user, user_id)[0]))

    def correct(
        self,
        user_id: str,
        line_id: str | None,
        text: str,
        kind: LineKind | str | None = None,
    ) -> Line:
        """Write a line as the user: it takes the place of a wrong one, or is new.

        No derivation changes it. What contradicts it later is kept as history.

        Args:
            user_id: The user.
            line_id: The current line that is wrong, or None to add one.
            text: What is right, one line.
            kind: Its kind; that of the wrong line, or a fact, where it is not given.

        Raises:
            NotFound: There is no such current line.
            InvalidRecord: The text or the kind is outside its rules.
        """
        return self._editor.correct(user_id, line_id, text, kind)

    def forget(self, user_id: str, line_id: str | None = None) -> Forgotten:
        """Delete a line and its text everywhere, or all that is known of a user.

        Other lines that say the same go with it. Items that were handed over before this, and
        would bring it back, do not; what the user says later is learned again.

        Raises:
            NotFound: There is no such line.
        """
        if line_id is None:
            return self._editor.forget_user(user_id)
        return self._editor.forget_line(user_id, line_id)

    def forget_sources(
        self,
        user_id: str,
        items: Iterable[Item | str] = (),
        *,
        conversations: Iterable[str] = (),
    ) -> Forgotten:
        """Delete what rests on items that are gone, for instance erased from the log.

        A line that nothing else says is deleted with its text everywhere; one that other items
        say, too, counts less. Items that wait are not derived. What the user wrote stays.

        Args:
            user_id: The user.
            items: Items, or their ids.
            conversations: Ids of conversations all of whose items are gone.
        """
        return self._editor.forget_sources(user_id, items, conversations)

    def forget_mark(self, user_id: str | None) -> str:
        """A text that changes whenever something of a user is forgotten.

        Whoever keeps what `build_user_context` gave compares it, and lets go of what is older.
        """
        if not user_id:
            return ""
        user = self._queue.name_of(user_id)
        with self._store.reading() as rows:
            return read_forget_mark(rows, user)

    def export(self, user_id: str) -> dict[str, Any]:
        """All that is kept of a user, as JSON: lines, history, and what waits."""
        waiting = self.status(user_id, limit=self._settings.capacity).items
        return export_profile(self.profile(user_id), self.history(user_id), waiting)

    def users(self) -> tuple[str, ...]:
        """Ids of the users of whom a profile is kept, in order."""
        with self._store.reading() as rows:
            return read_users(rows)

    def status(self, user_id: str | None = None, *, limit: int = 1_000) -> QueueStatus:
        """What waits, is being derived or was set aside, of one user or of all, and why."""
        user = None if user_id is None else self._queue.name_of(user_id)
        trouble = self._refresher.trouble
        return read_status(self._store, user, limit, self._settings.capacity, trouble)

    def build_user_context(
        self, user_id: str | None, text: str = "", max_tokens: int = MAX_TOKENS
    ) -> str | None:
        """A block about a user for the last user message, most useful lines first.

        Args:
            user_id: The user; None gives no block.
            text: What the turn is about.
            max_tokens: The most tokens of the block.

        Returns:
            None where nothing is known of the user, or nothing fits.
        """
        if not user_id:
            return None
        return self._ranked(user_id).block(text, max_tokens)

    def ask(self, user_id: str, question: str, model: ChatModel | None = None) -> Answer:
        """Answer a question about a user from the profile, or abstain.

        Args:
            user_id: The user.
            question: The question.
            model: A chat model that words the answer; without one it is the best lines.

        Raises:
            ModelError: The model failed.
        """
        lines = self.profile(user_id).current
        return (
            answer(lines, question) if model is None else answer_with_model(lines, question, model)
        )

    def as_provider(
        self, *, namespace: str | None = None, max_tokens: int = MAX_TOKENS
    ) -> UserModelProvider:
        """This user model as a provider of a stack, in mode `context`.

        Args:
            namespace: The one namespace that all its users belong to; see `UserModelProvider`.
            max_tokens: The most tokens of the block.
        """
        return UserModelProvider(self, namespace=namespace, max_tokens=max_tokens)

    def close(self) -> None:
        """Derive what waits, as far as `close_seconds` allow, and close; the rest stays queued."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        try:
            if self._refresher.background:
                self._refresher.flush(None, self._settings.close_seconds)
            self._refresher.close()
            self._store.erase()
        finally:
            self._store.close()
            if self._temporary is not None and self._temporary[1] == os.getpid():
                shutil.rmtree(self._temporary[0], ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ranked(self, user_id: str) -> RankedLines:
        """The lines of a user as they are now, prepared for questions."""
        user = self._queue.name_of(user_id)
        with self._store.reading() as rows:
            revision = read_revision(rows, user)
            held = self._prepared.get(user, revision)
            if held is not None:
                return held
            lines = read_profile(rows, user, user_id)[0].current  # of this revision, or a later
        return self._prepared.keep(user, revision, lines)

    def _load(self) -> Deriver:
        with self._lock:
            if isinstance(self._deriver, str):
                self._deriver = load_deriver(self._deriver)
            return self._deriver

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("the user model is closed; open a new one")


_open: weakref.WeakSet[UserModel] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for model in list(_open):
        model.close()
