"""All rules, in the order in which they are tried."""

from __future__ import annotations

import re

from .rules_doings import DOINGS
from .rules_family import FAMILY
from .rules_health import HEALTH
from .rules_likes import LIKES
from .rules_person import PERSON
from .rules_rule import FACT, Rule
from .rules_work import WORK

__all__ = ["MENTIONS", "OPENINGS", "RULES"]

RULES = (*PERSON, *HEALTH, *FAMILY, *WORK, *LIKES, *DOINGS)
"""Tried in order at each clause; the first whose pattern fits decides."""

MENTIONS = (
    Rule(
        FACT,
        r"\bmy (?P<plain>{partner})(?:,? (?P<name>{Name}))?\b(?!-)",
        "Has a {plain} named {name}",
        None,
        0.8,
        is_mention=True,
    ),
    Rule(
        FACT,
        r"\bmy (?:(?:own|two|three|four|five) )?(?P<plain>{relatives})\b(?!')",
        "Has {plain}",
        None,
        0.7,
        ends=("Has no {plain}",),
        is_mention=True,
    ),
    Rule(
        FACT,
        r"\bmy (?:(?:own) )?(?P<plain>{relative}|{kept})(?:,? (?P<name>{Name}))?\b(?!-)(?! "
        r"(?:painting|drawing|photo|pic|sculpture|portrait|food|toy|shirt|costume|house|bed|park|"
        r"walker|plush|story|in law)\b)",
        "Has a {plain} named {name}",
        None,
        0.7,
        ends=("Has no {plain}",),
        is_mention=True,
    ),
    Rule(
        FACT,
        r"\bmy (?P<plain>{pets})\b(?!-)",
        "Has {plain}",
        None,
        0.7,
        ends=("Has no {plain}",),
        is_mention=True,
    ),
    Rule(
        FACT,
        r"\bmy home country,? (?:of )?(?P<place>{Place})",
        "Is from {place}",
        "origin",
        0.85,
        is_mention=True,
    ),
    Rule(
        FACT,
        r"\bmy (?P<plain>(?:master's |bachelor's |college )?degree) in (?P<thing>\w+(?: \w+)?)",
        "Has a {plain} in {thing}",
        None,
        0.8,
        is_mention=True,
    ),
    Rule(
        FACT,
        r"(?<!quit )(?<!left )(?<!lost )(?<!from )\bmy (?:job|work|career|role|position) as "
        r"(?P<role>an? (?:[\w-]+ ){0,3}?{occupation})",
        "Works as {role}",
        None,
        0.8,
        is_mention=True,
    ),
    Rule(
        FACT,
        r"\bI am (?:an? [^,]*? )?(?:currently )?working (?:full-time |part-time )?as "
        r"(?P<role>an? (?:[\w-]+ ){0,3}?{occupation})",
        "Works as {role}",
        None,
        0.85,
        is_mention=True,
    ),
)
"""What a mention gives away, wherever it stands: who says "my husband" has one."""

OPENINGS = re.compile(
    r"(?:I|we|my|call me|you can call me|everyone|everybody|people|friends|they|please|always|"
    r"never|do not|stop|from now on|in future|in the future|going forward|moving forward|"
    r"henceforth|remember to|make sure|keep|only|not|as an?)\b",
    re.IGNORECASE,
)
"""How a clause begins that a rule may fit; those that begin with a noun only begin a sentence."""
