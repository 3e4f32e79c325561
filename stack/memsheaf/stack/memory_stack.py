"""The stack: one memory made of many providers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .contract import Order
from .core import Core
from .errors import UsageError
from .filters import Filter
from .forgetting import Forgetter
from .mount import Mounted
from .reading import Reader
from .records import MemoryRecord
from .relevance import Reranker
from .results import Blocks, ForgetReport, ImportReport, Outcome, Page, Receipt, SearchResult
from .scope import Scope
from .settings import StackSettings
from .transfer import export_lines, import_lines
from .writing import Writer

if TYPE_CHECKING:
    from .config import Config
    from .nested import StackProvider

__all__ = ["MemoryStack"]


class MemoryStack:
    """Sends every write to all providers, asks all of them at once, and merges what they say.

    Args:
        providers: Objects with methods marked by `hookimpl`, or `Mount` to name, weigh, pin or
            restrict one. The first that reads and writes is the authority for a record.
        scope: The scope of a call that names none.
        settings: Limits, timeouts and fusion; single settings may be given by keyword.
        plugins: Listeners and guards: objects with event hooks only.
        state: A folder for what the stack itself has to remember (ids in foreign systems); in
            memory where it is not given.
        disabled: Make every operation a no-op, as ``MEMSHEAF_DISABLED=1`` does.

    Raises:
        RegistrationError: A provider does not fit the contract; nothing stays registered.

    >>> from memsheaf.stack import MemoryStack, Scope
    >>> from memsheaf.stack.doubles import InMemoryStore
    >>> with MemoryStack([InMemoryStore()], scope=Scope(user_id="mira")) as stack:
    ...     receipt = stack.store("Mira plays the cello")
    ...     [hit.record.content for hit in stack.search("who plays cello?")]
    ['Mira plays the cello']
    """

    def __init__(
        self,
        providers: Iterable[object] = (),
        *,
        scope: Scope | None = None,
        settings: StackSettings | None = None,
        plugins: Iterable[object] = (),
        state: Path | str | None = None,
        disabled: bool = False,
        **single_settings: Any,
    ) -> None:
        chosen = settings or StackSettings()
        if single_settings:
            unknown = sorted(set(single_settings) - set(StackSettings.model_fields))
            if unknown:
                raise UsageError(f"unknown setting: {', '.join(unknown)}")
            try:
                chosen = StackSettings.model_validate({**chosen.model_dump(), **single_settings})
            except ValueError as error:
                raise UsageError(f"settings: {error}") from error
        folder = Path(state) if state is not None else None
        self._core = Core(providers, plugins, scope, chosen, folder, disabled)
        self._reader = Reader(self._core)
        self._writer = Writer(self._core, self._reader)
        self._forgetter = Forgetter(self._core, self._reader)

    @classmethod
    def from_config(cls, start: Path | str | Config | None = None, **overrides: Any) -> Self:
        """The stack that the configuration declares.

        Args:
            start: Where to look for a workspace, upward; the working directory by default. Or a
                configuration that `load_config` has read.
            overrides: Settings that beat environment and files, see `load_config`.

        Raises:
            ConfigError: A setting is wrong; the message names file, key and fix.
        """
        from .config import Config, load_config
        from .config_mounts import mounts, state_folder

        if not isinstance(start, Config):
            start = load_config(Path(start) if start is not None else None, overrides)
        elif overrides:
            raise UsageError("give settings to load_config, or none beside its result")
        config = start
        return cls(
            mounts(config),
            scope=config.scope,
            settings=config.stack,
            state=state_folder(config),
            disabled=config.disabled,
        )

    def store(
        self, content: str | MemoryRecord, *, scope: Scope | None = None, **fields: Any
    ) -> Receipt:
        """Store a memory in every provider that writes.

        Args:
            content: The text, or a whole record.
            scope: Whose memory; the stack's default where not given.
            fields: Other fields of `MemoryRecord`, beside a text.

        Returns:
            A receipt with an outcome per provider.

        Raises:
            InvalidRecord: A field is outside its rules; nothing was written.
            ScopeError: There is no scope, or one that cannot be written.
            IdUnavailable: The id cannot be used in this scope.
            StoreFailed: No provider took it.
        """
        return self._writer.store(content, scope, fields)

    def store_many(
        self,
        contents: Iterable[str | MemoryRecord],
        *,
        scope: Scope | None = None,
        **fields: Any,
    ) -> list[Receipt]:
        """Store several memories; a receipt each, in their order.

        Every record is checked before the first is written. A record that no provider took has
        an ``error`` in its receipt.

        Raises:
            InvalidRecord: A field is outside its rules; names the record; nothing was written.
            ScopeError: There is no scope, or one that cannot be written.
            IdUnavailable: An id cannot be used in its scope.
        """
        return self._writer.store_many(contents, scope, fields)

    def search(
        self,
        text: str,
        scope: Scope | None = None,
        limit: int | None = None,
        filters: Filter | Mapping[str, object] | None = None,
        *,
        min_relevance: float = 0.0,
        rerank: str | Reranker | None = None,
    ) -> SearchResult:
        """Ask every provider that reads, and merge their lists.

        Args:
            text: Any string; blank text returns the most recently updated.
            scope: Whose memories; the stack's default where not given.
            limit: Hits at the most.
            filters: Conditions on the records.
            min_relevance: Hits whose text matches less than this are left out.
            rerank: ``"bm25"`` or a function; adds one more list to the fusion.

        Returns:
            Hits, best first, and an outcome per provider. Nothing is counted as an access.

        Raises:
            InvalidQuery: An argument is outside its rules.
            ScopeError: There is no scope.
        """
        return self._reader.search("search", text, scope, limit, filters, min_relevance, rerank)

    def prefetch(
        self,
        text: str,
        scope: Scope | None = None,
        limit: int | None = None,
        *,
        min_relevance: float = 0.0,
    ) -> SearchResult:
        """Like `search`, through the providers' ``prefetch`` where they have one."""
        return self._reader.search("prefetch", text, scope, limit, None, min_relevance, None)

    def forget(self, record_id: str, scope: Scope | None = None) -> ForgetReport:
        """Delete a memory, and copies of its content in its scope, everywhere; then look again.

        Raises:
            ScopeError: There is no scope.
        """
        return self._forgetter.forget(record_id, scope)

    def update(
        self,
        record_id: str,
        changes: Mapping[str, object],
        scope: Scope | None = None,
        *,
        at: datetime | None = None,
    ) -> Receipt:
        """Change fields of a memory in every provider.

        Args:
            record_id: Which memory.
            changes: New values for content, kind, importance, tags, evergreen, metadata or
                expires_at; metadata is replaced as a whole.
            scope: Whose memory.
            at: When it changed; now where not given.

        Raises:
            NotFound: The scope does not hold it.
            InvalidRecord: A field may not be changed, or its value is outside its rules.
            StoreFailed: No provider took the change.
        """
        return self._writer.update(record_id, changes, scope, at)

    def get(self, record_id: str, scope: Scope | None = None) -> MemoryRecord | None:
        """The newest copy of a memory, or None where the scope does not hold it.

        Raises:
            Incomplete: It was not found, and some provider could not answer.
        """
        return self._reader.get(record_id, scope)

    def list(
        self,
        scope: Scope | None = None,
        limit: int | None = None,
        after: str | None = None,
        order: Order = "newest",
        filters: Filter | Mapping[str, object] | None = None,
    ) -> Page:
        """Memories by ``created_at``; 100 a page where no limit is given.

        Args:
            scope: Whose memories.
            limit: Records at the most, up to 1,000.
            after: The `next` of the page before.
            order: ``newest`` or ``oldest`` first.
            filters: Conditions on the records.
        """
        return self._reader.list(scope, limit, after, order, filters)

    def touch(self, record_ids: Sequence[str], scope: Scope | None = None) -> tuple[Outcome, ...]:
        """Count one deliberate recall of each memory, in one write per provider."""
        return self._writer.touch(record_ids, scope)

    def system_prompt(self, scope: Scope | None = None) -> Blocks:
        """The providers' static texts, the same bytes from turn to turn."""
        return self._reader.blocks("build_system_prompt", scope, "")

    def user_context(self, text: str = "", scope: Scope | None = None) -> Blocks:
        """The providers' blocks for the last user message."""
        return self._reader.blocks("build_user_context", scope, text)

    def export(self, scope: Scope | None = None) -> Iterator[str]:
        """All records of a scope as lines of JSON, a header line first.

        Raises:
            Incomplete: A provider could not be listed.
        """
        return export_lines(self, self._core.scope(scope))

    def import_(self, lines: Iterable[str | bytes], scope: Scope | None = None) -> ImportReport:
        """Store exported lines; only records within the scope, unless it is `Scope.EVERYONE`."""
        return import_lines(self, lines, self._core.scope(scope))

    def check(self) -> tuple[Outcome, ...]:
        """Each provider's health."""
        return self._reader.check()

    def retry(self, name: str) -> bool:
        """Open a provider again that is down, or close its breakers; True if it is up now.

        Raises:
            UsageError: No provider has that name.
        """
        return self._core.retry(name)

    def late_outcomes(self) -> tuple[Outcome, ...]:
        """How writes ended that had been given up as timed out."""
        return self._core.delivery.late()

    @property
    def providers(self) -> tuple[Mounted, ...]:
        """The mounted providers, in configured order."""
        return tuple(self._core.mounted)

    @property
    def scope(self) -> Scope | None:
        """The scope of a call that names none."""
        return self._core.default_scope

    @property
    def settings(self) -> StackSettings:
        """Limits, timeouts and fusion."""
        return self._core.settings

    def guard(self, event: str, **arguments: Any) -> None:
        """Let the guards of an event look first, for parts that build on the stack.

        Raises:
            Refused: A guard raised.
        """
        self._core.guard(event, **arguments)

    def tell(self, event: str, **arguments: Any) -> tuple[Outcome, ...]:
        """Tell the listeners of an event; failures come back as outcomes."""
        return self._core.tell(event, **arguments)

    def listen(self, plugin: object) -> Callable[[], None]:
        """Tell a plugin of this stack's events from now on; one that listens already stays.

        Args:
            plugin: An object that implements event hooks, see `ProviderSpec`.

        Returns:
            Ends it; calling it again does nothing.

        Raises:
            RegistrationError: It has no event hook, or the hook of a provider.
        """
        return self._core.listen(plugin)

    def as_provider(self) -> StackProvider:
        """This stack as a provider of another."""
        from .nested import StackProvider

        return StackProvider(self)

    def close(self) -> tuple[Outcome, ...]:
        """Close every provider; calling it again does nothing."""
        return self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
