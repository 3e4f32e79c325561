"""The kinds of memory, and the three classes that they fall into."""

from __future__ import annotations

from enum import StrEnum

from .errors import InvalidRecord

__all__ = ["Kind", "KindClass"]


class KindClass(StrEnum):
    """What sort of knowledge a kind is."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of this class, the one that stands for the class first."""
        return _MEMBERS[self]


class Kind(StrEnum):
    """What a memory is."""

    FACT = "fact"
    PREFERENCE = "preference"
    NOTE = "note"
    DECISION = "decision"
    INSIGHT = "insight"
    LINK = "link"
    EPISODE = "episode"
    SKILL = "skill"
    LESSON = "lesson"
    PATTERN = "pattern"
    GOTCHA = "gotcha"

    @property
    def kind_class(self) -> KindClass:
        """The class that this kind belongs to."""
        return next(c for c, members in _MEMBERS.items() if self in members)

    @classmethod
    def parse(cls, value: object) -> Kind:
        """Read a kind by name; a class name means the first kind of that class.

        Raises:
            InvalidRecord: The name is neither a kind nor a class.

        >>> Kind.parse("Procedural")
        <Kind.SKILL: 'skill'>
        """
        kinds = cls.expand(value)
        return kinds[0]

    @classmethod
    def expand(cls, value: object) -> tuple[Kind, ...]:
        """The kinds that a name stands for: itself, or every kind of the class it names.

        Raises:
            InvalidRecord: The name is neither a kind nor a class.
        """
        if isinstance(value, Kind):
            return (value,)
        name = value.strip().lower() if isinstance(value, str) else ""
        if name in KindClass.__members__.values():
            return KindClass(name).kinds
        if name in cls.__members__.values():
            return (cls(name),)
        known = ", ".join([*cls, *KindClass])
        raise InvalidRecord(f"unknown kind; use one of {known}")

    @classmethod
    def coerce(cls, value: object) -> tuple[Kind, str | None]:
        """Read a kind from a model or a foreign system.

        Returns:
            The kind, and the name to keep in ``metadata["kind"]`` where it was not one of ours.
        """
        if value is None or value == "":
            return cls.NOTE, None
        try:
            return cls.parse(value), None
        except InvalidRecord:
            return cls.NOTE, str(value)[:100]


_MEMBERS: dict[KindClass, tuple[Kind, ...]] = {
    KindClass.SEMANTIC: (
        Kind.FACT,
        Kind.PREFERENCE,
        Kind.NOTE,
        Kind.DECISION,
        Kind.INSIGHT,
        Kind.LINK,
    ),
    KindClass.EPISODIC: (Kind.EPISODE,),
    KindClass.PROCEDURAL: (Kind.SKILL, Kind.LESSON, Kind.PATTERN, Kind.GOTCHA),
}
