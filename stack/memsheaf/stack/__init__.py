"""The stack: many memory providers behind one contract.

Names are imported when they are first used: a part that needs a scope and an error does not wait
for pydantic and the rest. So no module here may be called like one of the names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .async_stack import AsyncMemoryStack
    from .config import Config, load_config
    from .config_mounts import mounts
    from .contract import Order, ProviderSpec, hookimpl
    from .cursors import cursor_of, read_cursor
    from .errors import (
        ClosedError,
        ConfigError,
        IdUnavailable,
        Incomplete,
        InvalidQuery,
        InvalidRecord,
        MemsheafError,
        MissingExtra,
        NotFound,
        ProviderError,
        ProviderTimeout,
        ProviderUnavailable,
        Refused,
        RegistrationError,
        ScopeError,
        StorageFull,
        StoreCorrupt,
        StoreFailed,
        UsageError,
    )
    from .fanout import mark_partial
    from .filters import Filter
    from .finishing import finish
    from .kinds import Kind, KindClass
    from .memory_stack import MemoryStack
    from .mount import Down, Mode, Mount, pinned, read_only, write_only
    from .nested import StackProvider
    from .ranking import RankingProfile, ranking_profile
    from .records import CONTENT_LIMIT, MemoryRecord, Origin, new_id
    from .registry import Plugin, ProviderContext, ProviderFactory, Registry
    from .relevance import Bm25Reranker, lexical_relevance
    from .results import (
        Blocks,
        Explanation,
        ForgetReport,
        Hit,
        ImportReport,
        Outcome,
        Page,
        Receipt,
        SearchResult,
        Source,
        Status,
        WiderScope,
    )
    from .scope import SCOPE_FIELDS, Scope
    from .settings import StackSettings
    from .text import same_content_key
    from .times import parse_time

__all__ = [
    "CONTENT_LIMIT",
    "SCOPE_FIELDS",
    "AsyncMemoryStack",
    "Blocks",
    "Bm25Reranker",
    "ClosedError",
    "Config",
    "ConfigError",
    "Down",
    "Explanation",
    "Filter",
    "ForgetReport",
    "Hit",
    "IdUnavailable",
    "ImportReport",
    "Incomplete",
    "InvalidQuery",
    "InvalidRecord",
    "Kind",
    "KindClass",
    "MemoryRecord",
    "MemoryStack",
    "MemsheafError",
    "MissingExtra",
    "Mode",
    "Mount",
    "NotFound",
    "Order",
    "Origin",
    "Outcome",
    "Page",
    "Plugin",
    "ProviderContext",
    "ProviderError",
    "ProviderFactory",
    "ProviderSpec",
    "ProviderTimeout",
    "ProviderUnavailable",
    "RankingProfile",
    "Receipt",
    "Refused",
    "RegistrationError",
    "Registry",
    "Scope",
    "ScopeError",
    "SearchResult",
    "Source",
    "StackProvider",
    "StackSettings",
    "Status",
    "StorageFull",
    "StoreCorrupt",
    "StoreFailed",
    "UsageError",
    "WiderScope",
    "cursor_of",
    "finish",
    "hookimpl",
    "lexical_relevance",
    "load_config",
    "mark_partial",
    "mounts",
    "new_id",
    "parse_time",
    "pinned",
    "ranking_profile",
    "read_cursor",
    "read_only",
    "same_content_key",
    "write_only",
]

_MODULES = {
    "async_stack": "AsyncMemoryStack",
    "config": "Config load_config",
    "config_mounts": "mounts",
    "contract": "Order ProviderSpec hookimpl",
    "cursors": "cursor_of read_cursor",
    "errors": (
        "ClosedError ConfigError IdUnavailable Incomplete InvalidQuery InvalidRecord "
        "MemsheafError MissingExtra NotFound ProviderError ProviderTimeout "
        "ProviderUnavailable Refused RegistrationError ScopeError StorageFull "
        "StoreCorrupt StoreFailed UsageError"
    ),
    "fanout": "mark_partial",
    "filters": "Filter",
    "finishing": "finish",
    "kinds": "Kind KindClass",
    "memory_stack": "MemoryStack",
    "mount": "Down Mode Mount pinned read_only write_only",
    "nested": "StackProvider",
    "ranking": "RankingProfile ranking_profile",
    "records": "CONTENT_LIMIT MemoryRecord Origin new_id",
    "registry": "Plugin ProviderContext ProviderFactory Registry",
    "relevance": "Bm25Reranker lexical_relevance",
    "results": (
        "Blocks Explanation ForgetReport Hit ImportReport Outcome Page Receipt "
        "SearchResult Source Status WiderScope"
    ),
    "scope": "SCOPE_FIELDS Scope",
    "settings": "StackSettings",
    "text": "same_content_key",
    "times": "parse_time",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
