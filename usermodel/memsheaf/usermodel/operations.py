"""What a deriver may ask for: four operations, each with the items that support it."""

from __future__ import annotations

from dataclasses import dataclass

from .profile import LineKind

__all__ = ["Add", "Confirm", "Operation", "Rejection", "Retract", "Supersede"]


@dataclass(frozen=True, slots=True)
class Add:
    """A new statement.

    Args:
        kind: What it says.
        text: The statement about the user, one line.
        confidence: 0 to 1.
        sources: Ids of items of the batch in which the user said it.
        subject: What it tells, where there can be one answer only, for instance `home`; a current
            line of the same subject is then superseded.
    """

    kind: LineKind
    text: str
    confidence: float
    sources: tuple[str, ...]
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Confirm:
    """The user said again what a current line says."""

    line_id: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Supersede:
    """A current line no longer holds; a new one, as in `Add`, takes its place."""

    line_id: str
    kind: LineKind
    text: str
    confidence: float
    sources: tuple[str, ...]
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Retract:
    """A current line no longer holds, and nothing takes its place."""

    line_id: str
    sources: tuple[str, ...]
    reason: str = ""


Operation = Add | Confirm | Supersede | Retract


@dataclass(frozen=True, slots=True)
class Rejection:
    """An operation that was not applied, and why; the reason holds no text of the user."""

    operation: object
    reason: str
