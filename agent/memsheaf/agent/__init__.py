"""The agent's turn: injection of memories, tools, reflection."""

from .cache_report import CacheReport, cache_report
from .definitions import Definition, SchemaForm
from .gate import TRIVIAL_PHRASES, TrivialGate, is_trivial
from .inject import (
    MIN_RELEVANCE,
    Injection,
    ainject,
    ainject_system,
    ainject_system_value,
    inject,
    inject_system,
    inject_system_value,
)
from .ledger import BlockLedger
from .policy import Access, Policy, TurnOrigin
from .recording import items_of, messages_of
from .reflection import Applied, ReflectionReport, ReflectionSettings, reflect, undo
from .scrub import Scrubber, strip_blocks, strip_messages
from .tokens import count_tokens, estimate_tokens
from .tools import MemoryTools
from .trim import Trimmed, trim_messages

__all__ = [
    "MIN_RELEVANCE",
    "TRIVIAL_PHRASES",
    "Access",
    "Applied",
    "BlockLedger",
    "CacheReport",
    "Definition",
    "Injection",
    "MemoryTools",
    "Policy",
    "ReflectionReport",
    "ReflectionSettings",
    "SchemaForm",
    "Scrubber",
    "Trimmed",
    "TrivialGate",
    "TurnOrigin",
    "ainject",
    "ainject_system",
    "ainject_system_value",
    "cache_report",
    "count_tokens",
    "estimate_tokens",
    "inject",
    "inject_system",
    "inject_system_value",
    "is_trivial",
    "items_of",
    "messages_of",
    "reflect",
    "strip_blocks",
    "strip_messages",
    "trim_messages",
    "undo",
]
