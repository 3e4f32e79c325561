"""A little English grammar: contractions, the third person, and where a value ends."""

from __future__ import annotations

import re

__all__ = [
    "as_list",
    "ends_in_adjective",
    "expand",
    "is_present",
    "third_person",
    "third_singular",
    "with_more_verbs",
]

_CONTRACTIONS = [
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        (r"\bi'?m\b", "I am"),
        (r"\bi'?ve\b", "I have"),
        (r"\bi'll\b", "I will"),
        (r"\bi'd\b", "I would"),
        (r"\bwe're\b", "we are"),
        (r"\bwe've\b", "we have"),
        (r"\b(it|that|he|she|what|there|who)'s (?=been|got|gotten|made|given|taken)", r"\1 has "),
        (r"\b(it|that|he|she|what|here|there|who|how)'s\b", r"\1 is"),
        (r"'s(?= (?:(?:so|very|really|super) )?important to me\b)", " is"),
        (r"\b(they|you)'re\b", r"\1 are"),
        (r"\b(they|you)'ve\b", r"\1 have"),
        (r"\bcan'?t\b", "cannot"),
        (r"\bcan not\b", "cannot"),
        (r"\bwon't\b", "will not"),
        (r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should)n'?t\b", r"\1 not"),
        (r"\bain't\b", "am not"),
        (r"\bgonna\b", "going to"),
        (r"\bwanna\b", "want to"),
        (r"\bgotta\b", "got to"),
        (r"(?:'cause|\bcuz|\bcos|\bcoz)\b", "because"),
        (r"\b(\w+in)'(?=\s)", r"\1g"),
        (r"\b(I|we) do (?=(?:really )?(?:like|love|enjoy|prefer|have|hate|use|play)\b)", r"\1 "),
        (r"\bi\b", "I"),
        (r"\bpl[sz]+\b", "please"),
        (r"(?-i:\bu)(?=\s|$)", "you"),
        (r"\bfavorite(s?)\b", r"favourite\1"),
    )
]

_THIRD = [
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        (r"\bI am\b", "they are"),
        (r"\bI was\b", "they were"),
        (r"\bam I\b", "are they"),
        (r"\b(?:I|(?-i:[Ww]e))\b(?! V?\d)", "they"),
        (r"\bme\b", "them"),
        (r"\bus\b(?-i:(?<!US))", "them"),
        (r"\b(?:my|our)\b", "their"),
        (r"\b(?:mine|ours)\b", "theirs"),
        (r"\b(?:myself|ourselves)\b", "themselves"),
    )
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SINGULAR = {"have": "has", "do": "does", "go": "goes", "be": "is", "am": "is"}

_AUXILIARIES = _words(
    "am is are was were be been had did done will would can cannot could should shall may might "
    "must ought"
)
_PAST = _words(
    "ate became began bit blew bought broke brought built burnt came caught chose drank drew "
    "drove dug dreamt fell felt flew forgot fought found froze gave got grew heard held hid hung "
    "kept knew laid learnt led left lent lit lost made meant met paid ran rang rode rose said "
    "sang sat saw sent shook shot slept sold spent spoke spoilt spun stood stole stuck struck "
    "swam swore taught thought threw told took tore understood went woke won wore wound wrote"
)
_ED_PRESENT = _words(
    "bleed breed embed exceed feed heed need proceed seed shed shred speed succeed wed"
)
# They tell of a thought of the moment, not of a habit.
_MENTAL = _words(
    "think know guess hope want wish remember believe feel wonder need mean say see suppose try "
    "appreciate understand agree hear get find seem tell"
)
_NO_VERBS = _words(
    "a an the my our your this that these those so too very quite such just really in on at for "
    "with from to of and or but not no there here more most less only even"
)


def expand(text: str) -> str:
    """Write contractions out, so that a pattern needs one form only.

    >>> expand("I'm sure I don't like it 'cause it's loud")
    'I am sure I do not like it because it is loud'
    """
    for pattern, whole in _CONTRACTIONS:
        text = pattern.sub(whole, text)
    return text


def third_person(text: str) -> str:
    """A phrase of the speaker, as another would say it of them.

    >>> third_person("spending time with my kids when I am free")
    'spending time with their kids when they are free'
    """
    for pattern, other in _THIRD:
        text = pattern.sub(other, text)
    return text


def third_singular(verb: str) -> str:
    """A verb's form after "she".

    >>> [third_singular(verb) for verb in ("play", "study", "watch", "have")]
    ['plays', 'studies', 'watches', 'has']
    """
    if verb in _SINGULAR:
        return _SINGULAR[verb]
    if verb.endswith(("s", "x", "z", "ch", "sh")):
        return verb + "es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


def with_more_verbs(text: str) -> str:
    """What follows a verb after "she", where "and" joins a second verb to it.

    >>> with_more_verbs("goes to the mall and end up in the cinema")
    'goes to the mall and ends up in the cinema'
    """
    return _JOINED_VERB.sub(lambda found: found[1] + third_singular(found[2]), text)


def is_present(verb: str) -> bool:
    """Whether a word after "I" can be a verb that tells of a habit, in the present tense."""
    verb = verb.lower()
    if (
        verb in _AUXILIARIES
        or verb in _MENTAL
        or verb == "do"
        or verb in _PAST
        or verb in _NO_VERBS
        or verb.endswith("ly")
    ):
        return False
    return not verb.endswith(("ed", "ing")) or verb in _ED_PRESENT or verb in ("sing", "bring")


def ends_in_adjective(text: str) -> bool:
    """Whether a phrase may have lost its noun, as "a safe" of "a safe and loving home"."""
    return _ADJECTIVE.search(text) is not None


def as_list(text: str) -> str:
    """As much of a phrase as is one phrase or a whole list: what follows a comma is often not.

    >>> as_list("tea, coffee and juice"), as_list("hiking, it is so calming")
    ('tea, coffee and juice', 'hiking')
    """
    first, *others = re.split(r"\s*,\s*", text)
    if _BARE_ADJECTIVE.fullmatch(first) and others and not _FINITE.search(others[0]):
        first, others = f"{first}, {others[0]}", others[1:]
    if others and ends_in_adjective(first) and not _FINITE.search(others[0]):
        first, others = f"{first}, {others[0]}", others[1:]
    taken = [first]
    for part in others:
        words = part.split()
        closes = bool(words) and words[0].lower() in ("and", "or")
        if not words or len(words) > (5 if closes else 4) or _FINITE.search(part):
            break
        taken.append(part)
        if closes or re.search(r"\s(?:and|or)\s", part):
            return ", ".join(taken)
    return ", ".join(taken) if len(taken) > 2 else first


_BARE_ADJECTIVE = re.compile(
    r"dark|light|bright|old|modern|classic|simple|soft|loud|quiet|fast|slow|warm|cold|sweet|sour|"
    r"spicy|crispy|short|long|big|small|tall|deep|cheap|minimal|vintage|natural",
    re.IGNORECASE,
)
_ADJECTIVE = re.compile(
    r"\b(?:an?|the|my|our) (?:safe|warm|big|small|new|good|great|nice|cosy|cozy|little|long|short|"
    r"quiet|calm|healthy|simple|rich|better|weekly|daily|monthly|friendly|happy|busy|\w+(?:ful|ive|"
    r"able|ible|ous|less))$",
    re.IGNORECASE,
)
_JOINED_VERB = re.compile(
    r"\b((?:and|then|or) (?:then |also |usually |often |always )?)(end|go|make|eat|take|get|"
    r"drink|watch|read|"
    r"play|use|try|walk|run|write|cook|listen|hang|spend|have|do|add|keep|put|bring|teach|sing|"
    r"dance|paint|"
    r"meet|check|order|buy|ride|swim|sleep|wake|stretch|meditate|prefer|love|hate|like|let|give|"
    r"sit)\b"
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|am|it|that|this|I|you|he|she|we|they|so|but|which|who|because|"
    r"thanks?|not|have|has|had|do|does|did|will|would|can|cannot|could)\b",
    re.IGNORECASE,
)
