"""What a rule is: a pattern over a clause in the first person, and the line that it makes.

A name in braces in a pattern is a piece of `WORDS` or a group: `{thing}`, `{act}` and `{rest}`
take what follows and are cut where the phrase ends, `{do}` is a verb. In a text and in a subject
a name in braces is what its group took, turned into the third person.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from .profile import LineKind
from .rules_words import WORDS

__all__ = ["FACT", "GOAL", "HABIT", "INSTRUCTION", "PREFERENCE", "Rule"]

FACT, PREFERENCE, HABIT, GOAL, INSTRUCTION = (
    LineKind.FACT,
    LineKind.PREFERENCE,
    LineKind.HABIT,
    LineKind.GOAL,
    LineKind.INSTRUCTION,
)

_GROUPS = {
    "thing": r"(?P<thing>\S.*)",
    "act": r"(?P<act>\S.*)",
    "rest": r"(?P<rest>(?:\s.*)?)",
    "do": r"(?P<do>[a-z-]+)",
    # Where an adjective or a noun stands alone: "I am vegan and", never "I am deaf to".
    "end": r"(?=$|\s*[,(]|\s(?:and|but|so|since|because|who|which|now|by|too|as well|myself|though"
    r"|these days|at heart|for (?:the|about|over|almost|\w+ (?:years?|months?|weeks?|decades?))|"
    r"with a|from|at|in|living|working|based|here|btw|as you|last|when)\b)",
}


@dataclass(frozen=True)
class Rule:
    """One way to say something about oneself.

    Attributes:
        kind: The kind of the line.
        pattern: What a clause must look like from its start.
        text: The line.
        subject: What the line tells, where a newer line replaces it.
        confidence: Of the line.
        ends: Lines that this one ends, whatever follows them.
        only_known: Whether this says something only where it ends a line.
        is_definite: Whether "the …" is fine as thing; elsewhere it points at something at hand.
        is_mention: Whether it is only given away.
    """

    kind: LineKind
    pattern: str
    text: str
    subject: str | None = None
    confidence: float = 0.8
    ends: tuple[str, ...] = ()
    only_known: bool = False
    is_definite: bool = False
    is_mention: bool = False

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern with its pieces filled in."""
        pieces = WORDS | _GROUPS
        filled = re.sub(r"\{([A-Za-z]+)\}", lambda name: pieces[name[1]], self.pattern)
        return re.compile(filled, re.IGNORECASE)
