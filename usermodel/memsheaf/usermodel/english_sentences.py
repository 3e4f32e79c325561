"""What of a message is the user's own speech, as sentences: no code, quotation or pasted text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .english import expand

__all__ = ["MAX_MESSAGE", "OPAQUE", "Sentence", "own_speech", "sentences"]

MAX_MESSAGE = 4_000
"""Characters; a longer message is taken to be pasted."""

OPAQUE = "\u2425"
"""Stands where something was taken out that no statement may hold."""

# Controls, bidi marks and invisible characters; the joiners stay, scripts need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufffd\ud800-\udfff\U000e0000-\U000e0fff]"
)
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u00a0": " "})
_FENCES = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
# A memory block that was injected is tagged text too.
_TAGGED = re.compile(r"<\s*([a-zA-Z][\w:-]*)(?:\s[^<>]*)?>.*?(?:</\1\s*>|\Z)", re.DOTALL)
_INLINE_CODE = re.compile(r"`([^`\n]*)`")
_LINKS = re.compile(r"\b(?:https?://|www\.)\S+|\b[\w.+-]+@[\w-]+\.\w[\w.-]*")
# What looks like a password, a key, a card or phone number stays out of profiles and prompts.
_SECRETS = re.compile(
    r"\b(?:pass(?:word|phrase|code)|pin(?: code)?|api[ _-]?key|secret(?: key)?|token)s?(?:'s| is|"
    r" are|:| =|=) *\S+|\b(?:(?:sk|pk|gh[opsu]|xox[a-z])[-_]|(?-i:AKIA|AIza))[\w-]{8,}|"
    r"\b(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Za-z])[\w-]{24,}|(?<![\w.])\+?\d(?:[ -]?\d){8,}\b",
    re.IGNORECASE,
)
# From one of these to the end, the words are somebody else's, or not meant as speech.
_PASTED = re.compile(
    r"^(?:-{2,}\s*(?:original|forwarded) message.*|on .{4,80} wrote:\s*$|(?:from|subject|to|"
    r"sent):\s.*|traceback \(most recent call last\):.*|-{3,}\s*$"
    r"|.*:\s*\n(?=[\s\S]{300})"  # something is announced, and much follows
    r"|(?<=\n)[ \t]*(?:dear|hi|hello|hey)\b[^\n.!?]{0,40},\s*$)"  # a letter begins below
    r"|^[ \t]*(?:dear|hi|hello|hey)\b[^\n.!?]{0,40},[ \t]*\n(?=[\s\S]*^[ \t]*(?:best|kind|warm|"
    r"yours|sincerely|regards|cheers)\b[^\n.!?]{0,20},?[ \t]*$)",  # or is the whole message
    re.IGNORECASE | re.MULTILINE,
)
_TASK = re.compile(
    r"\b(?:translat|proofread|rewrit|rewrite|rephras|paraphras|summari[sz]|correct(?!ion\b)|edit|improv|"
    r"polish|shorten|continu|complet|fix|review|analy[sz]|classif|grammar|here is|here are|"
    r"following|below|draft|write|essay|story|poem|lyrics|dialogue|transcript|cover letter|"
    r"prompt|email|letter|bio|review|example|sentence|says?|said|"
    r"wrote)\w*\b[^\n.!?]{0,120}:(?=\s|$)",
    re.IGNORECASE | re.MULTILINE,
)
# A prompt casts roles; whoever says "I" in it need not be the user.
_PROMPT = re.compile(
    r"\s*(?:please |i want you to |i would like you to |from now on,? )*(?:you are (?:an?|now|"
    r"going to)\b|you will (?:act|be)\b|act (?:as|like)\b|pretend\b|role-?play\b|imagine\b|your "
    r"(?:task|role|job) is\b|let's (?:role-?play|pretend|play)\b)",
    re.IGNORECASE,
)
_NOT_SPEECH = re.compile(
    r"^(?:\s*>|    |\t|\s*\||\s*\$ |\s*#|\s*@@|\s*[+-]{1,3}(?=\S)|\s*\w+\s*[:=]\s*[\[{(\"'])|"
    r"^\s*(?i:user|assistant|system|human|ai|bot|agent|me|you): |"
    r"^\s*(?!(?:Remember|Note|PS|FYI|Update|Reminder|Correction|Important|Edit|BTW):)[A-Z][\w "
    r".]{0,30}:\s+\S",
)
_QUOTED = re.compile(
    '"[^"\n]*"|\u201c[^\u201d\n]*\u201d|\u00ab[^\u00bb\n]*\u00bb|\u201e[^\u201c\u201d\n]*[\u201c\u201d]'
    r"|(?<!\w)'(?=\S)[^'\n]*(?:'\w[^'\n]*)*'(?!\w)"
)
_OWN_WORDS = re.compile(r"\b(?:I|I'm|I've|my|me|we|our|you|your)\b", re.IGNORECASE)
_ABBREVIATION = re.compile(
    r"(?<![\w'])(?:dr|mr|mrs|ms|st|mt|ft|jr|sr|prof|vs|dept|inc|ltd|co|approx|ca|vol|sgt|capt|"
    r"rev|hon|e\.g|i\.e|a\.m|p\.m|ph\.d|u\.s|u\.k|d\.c|[a-hj-z])\.$",
    re.IGNORECASE,
)
_END = re.compile(
    r"[.!?\u2026]+[)\"'\u201d]*(?=\s|$)|\n+|[;\u2014]|\s[-\u2013]{1,2}\s|\s*[:;]-?[)(DP](?=\s|$)"
    "|[\u2600-\u27bf\U0001f000-\U0001faff]+"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence with its contractions written out.

    Attributes:
        text: Without its end mark.
        is_question: Whether it ends in a question mark.
    """

    text: str
    is_question: bool


def sentences(message: str) -> list[Sentence]:
    r"""The sentences of a message that are the user's own speech.

    >>> [s.text for s in sentences("I'm at Dr. Lee's.\n> I hate tea\nI use `uv`!")]
    ["I am at Dr. Lee's", 'I use uv']
    """
    if len(message) > MAX_MESSAGE or _PROMPT.match(message):
        return []
    return [
        Sentence(expand(text), is_question) for text, is_question in _split(own_speech(message))
    ]


def own_speech(message: str) -> str:
    """A message without code, quotations, pasted text, tagged blocks and secrets."""
    text = re.sub(r"(?<!\w)'cause\b", "because", _HIDDEN.sub("", message).translate(_APOSTROPHES))
    for pattern in (_FENCES, _TAGGED):
        text = pattern.sub(f"\n{OPAQUE}\n", text)
    if pasted := _PASTED.search(text):
        text = text[: pasted.start()]
    if task := _TASK.search(text):
        text = text[: task.start()] + OPAQUE
    text = _INLINE_CODE.sub(lambda code: code[1] if _is_name(code[1]) else OPAQUE, text)
    text = _SECRETS.sub(OPAQUE, _LINKS.sub(OPAQUE, text))
    text = _QUOTED.sub(lambda quoted: quoted[0] if _is_title(quoted[0]) else OPAQUE, text)
    return "\n".join(
        re.sub(r"^\s*(?:[-*\u2022]|\d+[.)])\s+(?:\[[ xX]\]\s+)?", "", line)
        for line in text.split("\n")
        if not _NOT_SPEECH.match(line)
    )


def _is_name(code: str) -> bool:
    return 0 < len(code) <= 40 and " " not in code and any(c.isalpha() for c in code)


def _is_title(quoted: str) -> bool:
    return len(quoted.split()) <= 8 and not _OWN_WORDS.search(quoted)


def _split(text: str) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    start = 0
    for end in _END.finditer(text):
        mark = end[0].strip()
        if mark == "." and _ABBREVIATION.search(text[start : end.end()].rstrip()):
            continue
        found.append((text[start : end.start()], "?" in mark))
        start = end.end()
    found.append((text[start:], False))
    tidied = ((" ".join(part.split()).strip(" ,"), question) for part, question in found)
    return [(part, question) for part, question in tidied if part]
