"""What is no statement of the user: hypotheses, reported speech, jokes, the past."""

from __future__ import annotations

import re

__all__ = ["is_current", "is_meant", "is_said", "is_taking_back"]

# Before the clause, in its sentence: what makes it no statement of fact.
_UNREAL = re.compile(
    r"\b(?:if|unless|whether|imagine|suppose|supposing|pretend|assume|assuming|would|wish|maybe|"
    r"perhaps|as though|let us say|let's say|hypothetically|what if|until|once|when|whenever|in "
    r"case|might|except|role-?play|act as|in (?:the|a|my) (?:story|novel|game|dream|film|movie|"
    r"scenario)|used to think|thought|for example|e\.g|such as|like when)\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:said|says|saying|say|tells?|telling|told|claims?|claimed|thinks|asks?|asked|wrote|"
    r"writes|texted|reckons|believes?|according to|heard|joked|jokes|yell\w*|shout\w*|sings?|"
    r"sang|quotes?|goes|went like|titled|called|reads|quoting|mentioned|(?:he|she|they|you) "
    r"(?:think|feel)s?)\b",
    re.IGNORECASE,
)
_OWN_REPORT = re.compile(
    r"\b(?:(?:like|as)? ?I (?:said|told you|told \w+|mentioned|say)|call(?:s|ed)? me)\b",
    re.IGNORECASE,
)
# After the clause: who said it, or that it was a joke.
_UNSAID = re.compile(
    r",?\s+(?:he|she|they|my \w+|[A-Z]\w+) (?:said|says|wrote|told me|claims|thinks|joked)\b|"
    r"\b(?:just kidding|jk|yeah right|said no one|as if)\b|(?:^|\s)/s\b",
)
_SARCASM = re.compile(
    r"\b(?:oh (?:great|yeah|sure|joy)|yeah,? right|I just love (?:it )?(?:when|how)|just what I "
    r"(?:need|want)ed?|because (?:of course|obviously) I)\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"(?:haha |lol )?(?:not|not really|just kidding|kidding|jk|nope|or not|no way|said no one "
    r"ever|as if|i wish|in my dreams)(?: lol| haha)?|(?:haha |lol |no,? )?(?:just "
    r"kidding|kidding|jk|just joking)\b.*",
    re.IGNORECASE,
)
# Around a mention: it is gone, or it is somebody else's.
_GONE = re.compile(
    r"\b(?:died|passed|lost|late|ex|future|when I was|when we were|used to|childhood|growing up|"
    r"as a (?:kid|child|teen\w*)|back then|grew up|remember(?:ed|s)?|miss|memor\w+|had|once|"
    r"years ago|imaginary|like my|want|wish|broke up|left me|divorce\w*|separated|dream\w*)\b",
    re.IGNORECASE,
)


def is_said(before: str) -> bool:
    """Whether the words before a clause leave it a statement.

    >>> is_said("Well, "), is_said("If "), is_said("My friend says ")
    (True, False, False)
    """
    return not (_UNREAL.search(before) or _REPORTED.search(_OWN_REPORT.sub("", before)))


def is_meant(sentence: str) -> bool:
    """Whether nothing in a sentence takes it back: a joke, or who else said it."""
    return not (_SARCASM.search(sentence) or _UNSAID.search(sentence))


def is_current(sentence: str) -> bool:
    """Whether what a sentence mentions can be taken to be there now."""
    return is_said(sentence) and not _GONE.search(sentence)


def is_taking_back(sentence: str) -> bool:
    """Whether a sentence takes back the one before it: "I love queues. Not!"."""
    return _TAKEN_BACK.fullmatch(sentence) is not None
