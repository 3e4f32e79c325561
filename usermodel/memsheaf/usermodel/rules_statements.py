"""From a message to statements: clauses, guards against what is no statement, and the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from .english import is_present, third_person, third_singular, with_more_verbs
from .english_sentences import Sentence, sentences
from .profile import LineKind
from .rules_guards import is_current, is_meant, is_said, is_taking_back
from .rules_phrases import name, phrase, subject, tidy
from .rules_rule import Rule
from .rules_table import MENTIONS, OPENINGS, RULES

__all__ = ["Correction", "Statement", "read"]

MAX_LINE = 120
_MAX_SENTENCE = 600
_MAX_REQUEST = 1_000  # characters; "always check" in a longer message is part of some text


@dataclass(frozen=True, slots=True)
class Statement:
    """What one clause says; the fields are those of the rule, filled in.

    Attributes:
        value: The last group that the text holds, which a correction may replace.
        is_mention: Whether it was only given away; then a line that says more is enough.
    """

    kind: LineKind
    text: str
    subject: str | None
    confidence: float
    value: str = ""
    ends: tuple[str, ...] = ()
    only_known: bool = False
    is_mention: bool = False


@dataclass(frozen=True, slots=True)
class Correction:
    """It is `new`, not `old`; without `old` it means what was said just before."""

    new: str
    old: str | None


_LEAD = re.compile(
    r"(?:(?:yeah|yes|yep|yup|oh|ah|wow|well|so|and|but|also|plus|anyway|honestly|actually|"
    r"basically|personally|btw|by the way|thanks(?: so much| a lot| for \w+)?|thank you|(?:hi|"
    r"hello|hey)(?: there)?(?!,? (?:all,? |everyone,? )?(?:I am|this is|it is) (?-i:[A-Z]))|sure|"
    r"no|nope|nah|ok|okay|haha|lol|lately|recently|now|nowadays|these days|currently|for me|as "
    r"for me|in fact|to be honest|tbh|(?:just )?fyi|just so you know|for the record|for context|"
    r"for reference|you should know|I should (?:add|mention|say)|bear in mind|"
    r"please note|note|(?:always |please )?remember|keep in mind|do not forget|(?:like|as) "
    r"I (?:said|mentioned)|I (?:said|told you|mentioned|must say|have to say|mean)|correction|"
    r"sorry|since then|of course|luckily|unfortunately|sadly|first of all|right now|at the "
    r"moment|absolutely|definitely|totally|true|same here|me too|funny enough|because|for sure|"
    r"you know|(?:since|as)(?= I\b)|cool|great|awesome|nice|agreed|right|why|that is why|this is "
    r"why|now that|one reason is|also)(?: that)?\b[\s,:]*(?:(?!I\b)[A-Z]\w+,\s+)?)*",
    re.IGNORECASE,
)
_ASKS_MORE = re.compile(
    r"\b(?:tell me more|(?:know|learn|hear|find out) more|more (?:info|information|details))\b",
    re.IGNORECASE,
)
_STARTS = re.compile(
    r"(?:^|[,:]\s+|\s(?=(?:and|but|so|because|since|as|plus|although|though|that|why|now "
    r"that)\s(?:now |then |also )?(?:I|my|we)\b))"
)
_ELLIPSIS = re.compile(
    r"(\bI (?:(?!\b(?:to|will|can|cannot|would|could|not|let|help|make|and|if)\b)[^,;])*?) and "
    r"(live|work|love|hate|prefer|use|speak|have|own|play|study|am|enjoy|like) (?=(?:an?|the|my|"
    r"in|at|as|for|to|from|two|three|\w+ing)\b|[A-Z])"
)
_CORRECTION = re.compile(
    r"(?P<lead>(?:(?:no|oops|wait|actually|sorry|correction|I meant|my mistake|my "
    r"bad)\b[\s,:]*)*)(?:(?:it is|that is|it should be|that should be|make that|I meant|I mean) "
    r")?(?P<new>\S+(?: \S+){0,3}?)(?:,? (?:and )?not (?P<old>\S+(?: \S+){0,3}))?$",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"(?:(?:no|oops|wait|actually|sorry|correction|I meant|my mistake|my bad)\b[\s,:]*)+(?:it is|"
    r"that is|it should be|that should be|make that|I meant|I mean)\b|(?:actually|correction|I "
    r"meant)\b|(?:it is|it should be) .* not ",
    re.IGNORECASE,
)


def read(message: str) -> list[Statement | Correction]:
    """What a message says about its writer, in its order.

    >>> [said.text for said in read("I love pottery, it's so calming. Do I like tea?")]
    ['Loves pottery']
    """
    said: list[Statement | Correction] = []
    own = sentences(message)
    for sentence, following in zip_longest(own, own[1:]):
        taken_back = following is not None and is_taking_back(following.text)
        if not (sentence.is_question or taken_back or len(sentence.text) > _MAX_SENTENCE):
            said += _of_sentence(sentence)
    if _ASKS_MORE.search(message):  # then it is a topic of the day
        said = [each for each in said if not _is_interest(each)]
    if len(message) > _MAX_REQUEST:
        said = [each for each in said if not _is_instruction(each)]
    return said


def _is_interest(said: Statement | Correction) -> bool:
    return isinstance(said, Statement) and said.text.startswith("Is interested in ")


def _is_instruction(said: Statement | Correction) -> bool:
    return isinstance(said, Statement) and said.kind is LineKind.INSTRUCTION


def _of_sentence(sentence: Sentence) -> Iterator[Statement | Correction]:
    text = _ELLIPSIS.sub(r"\1 and I \2 ", sentence.text)
    if not is_meant(text):
        return
    said = list(_of_clauses(text))
    if not said and (correction := _correction(text)):
        yield correction
    yield from said
    if is_current(text):
        for rule in MENTIONS:
            for match in rule.regex.finditer(text):
                if mention := _statement(rule, match):
                    yield mention


def _of_clauses(text: str) -> Iterator[Statement]:
    done = -1
    for start in _STARTS.finditer(text):
        lead = _LEAD.match(text, start.end())
        begin = lead.end() if lead else start.end()
        if begin <= done:
            continue
        done = begin
        if not is_said(text[:begin]):
            return
        if start.start() and not OPENINGS.match(text, begin):
            continue
        clause = text[begin:]
        for rule in RULES:
            if match := rule.regex.match(clause):
                if statement := _statement(rule, match):
                    yield statement
                if "when" in match.groupdict():  # "On Sundays, I hike" is one clause
                    done = begin + match.start("do")
                break


def _statement(rule: Rule, match: re.Match[str]) -> Statement | None:
    values: dict[str, str] = {}
    bases: dict[str, str] = {}
    last = ""
    for group, raw in match.groupdict().items():
        base = _base(group, raw or "", rule)
        if base is None:
            return None
        bases[group] = base
        values[group] = _conjugated(base) if group in _VERBS else base
        last = base or last
    text = tidy(rule.text.format_map(values))
    if values.keys() & _VERBS:
        text = with_more_verbs(text)
    if len(text) > MAX_LINE or not text.isprintable():
        return None
    return Statement(
        kind=rule.kind,
        text=text,
        subject=rule.subject and subject(rule.subject.format_map(bases)),
        confidence=rule.confidence,
        value=last,
        ends=tuple(tidy(end.format_map(values)) for end in rule.ends),
        only_known=rule.only_known,
        is_mention=rule.is_mention,
    )


_VERBS = frozenset({"do", "did"})
_PRESENT = {
    "loved": "love",
    "liked": "like",
    "enjoyed": "enjoy",
    "hated": "hate",
    "eating": "eat",
    "drinking": "drink",
    "smoking": "smoke",
    "vaping": "vape",
}


def _base(group: str, raw: str, rule: Rule) -> str | None:
    """A group's words in the third person, a verb in its base form; None refuses the statement."""
    match group:
        case "thing" | "other":
            return phrase(raw, is_object=True, is_definite=rule.is_definite)
        case "act":
            act = phrase(raw, is_object=False, is_definite=rule.is_definite)
            return act and act[0].lower() + act[1:]
        case "rest":
            return phrase(raw, is_object=False, is_definite=True)
        case "name" | "place":
            return name(raw)
        case "age":
            return raw if 5 <= int(raw) < 120 else None
        case "do":
            return raw.lower() if not raw or is_present(raw.split()[0]) else None
        case "did":
            return _PRESENT.get(raw.lower(), "")
        case "when":
            return raw[:1].lower() + raw[1:]
        case "how":
            return third_person(raw).strip().lower().replace("do not", "not")
        case _:
            return third_person(re.sub(r"^another\b", "a", raw.strip()))


def _conjugated(verb: str) -> str:
    first, space, rest = verb.partition(" ")
    return third_singular(first) + space + rest if verb else ""


def _correction(text: str) -> Correction | None:
    """A sentence that corrects what was said before it."""
    match = _CORRECTION.match(text)
    if match is None or not _CORRECTS.match(text):
        return None
    new, old = (part and part.strip(" ,.!\"'") for part in (match["new"], match["old"]))
    if not new or _VAGUE.search(new):
        return None
    return Correction(new, old)


_VAGUE = re.compile(
    r"\b(?:I|you|he|she|we|they|it|this|that|so|very|not|really|a|the|pretty|great|good|fine|"
    r"nice|is|are|was|to|just|my|your|quite|true|ok|okay|right|wrong)\b",
    re.IGNORECASE,
)
