"""The agent's turn: injection of memories, tools, reflection."""

from .definitions import Definition, SchemaForm
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
from .policy import Access, Policy, TurnOrigin
from .recording import items_of, messages_of
from .reflection import Applied, ReflectionReport, ReflectionSettings, reflect, undo
from .tools import MemoryTools

__all__ = [
    "MIN_RELEVANCE",
    "Access",
    "Applied",
    "Definition",
    "Injection",
    "MemoryTools",
    "Policy",
    "ReflectionReport",
    "ReflectionSettings",
    "SchemaForm",
    "TurnOrigin",
    "ainject",
    "ainject_system",
    "ainject_system_value",
    "inject",
    "inject_system",
    "inject_system_value",
    "items_of",
    "messages_of",
    "reflect",
    "undo",
]
