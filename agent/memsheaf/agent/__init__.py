"""The agent's turn: memories go into the messages of a request."""

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

__all__ = [
    "MIN_RELEVANCE",
    "Injection",
    "ainject",
    "ainject_system",
    "ainject_system_value",
    "inject",
    "inject_system",
    "inject_system_value",
]
