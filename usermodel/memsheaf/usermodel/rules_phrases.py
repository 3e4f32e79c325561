"""The values of a line: where a phrase ends, whether it says something by itself, its grammar."""

from __future__ import annotations

import re

from .english import as_list, ends_in_adjective, third_person
from .english_sentences import OPAQUE

__all__ = ["name", "phrase", "subject", "tidy"]

_MAX_WORDS = 12
_CUT = re.compile(
    r"\s+(?:[-\u2013]+|because|since|so|but|although|though|(?<!\sa\s)while|whereas|even|"
    r"as(?! (?:well as|a|an|my|the)\b)|where|unless|if|until|except|thanks|lol|haha|btw|"
    r"or (?:something|whatever|anything)|and (?:I|it|that|this|they|we|he|she|you|my|there|am|"
    r"have|will|was|would|could|cannot|do|did|want|hope|think|feel|love|just|now|then|always|"
    r"also|so|even|not|is|are|has|found|got|been|really|usually|can|thanks|hate|prefer|use|had|"
    r"let|make|makes|maybe|wanted|started|went|decided|try|plan|bring|brings))\b|\(|:(?=\s|$)",
    re.IGNORECASE,
)
_DOUBT = re.compile(r"\s*(?:if|unless|until|except)\b", re.IGNORECASE)
_TAIL = re.compile(
    r"[\s,]+(?:too|as well|a lot|lots|so much|very much|though|anymore|any more|again|these days|"
    r"last \w+|nowadays|lately|right now|at the moment|at present|now|currently|honestly|"
    r"actually|for sure|more than anything|the most|dearly|either|at all|instead|recently|next "
    r"year|soon|some ?day|one day|in the future|eventually|ever since|already|myself|of course|"
    r"you know|and stuff|and more|and such|and so on|etc|and all|because|before|if possible|"
    r"please|!+)\W*$",
    re.IGNORECASE,
)
_POISON = re.compile(
    r"\b(?:you|your|yours|yourself|ya|u|y'all|he|she|him|her|hers|his|they|them|(?<!and "
    r")their|it|its|this|these|those|here|there|today|tonight|tomorrow|yesterday|would|might|"
    r"maybe|is|are|was|were|ones?$|(?:last|next|this) (?:\w+day|week|weekend|month|night|time|"
    r"summer|winter|spring|fall)|[wW]hat|such|something|anything|everything|someone|everyone|"
    r"stuff|things? (?:like|that)|ago|looks|sounds|seems|had|did|felt|made|went|got|gave)\b|"
    + OPAQUE,
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[\[\]{}<>|\\=^@]")
_BAD_START = re.compile(
    r"(?:that|how|what|when|where|who|why|which|if|one|ones|some(?! of my)|any|all (?:the|of|"
    r"that)|another|every|each|both|same|to (?:say|think|believe|hear|know|see|ask|tell|thank|"
    r"add|point|mention|make sure)\b|hearing|knowing|seeing (?:how|your)|about|of|at|in|on|more|"
    r"for|from|than|as|by|with|so|too|much|not|a ton|a lot|lots|tons|many|up|out|down|it|me|us|"
    r"being able|getting to|just|then|also|very|really|having (?:a|an|my) (?:great|good)|working "
    r"with you|talking|my (?:new|own) one)\b",
    re.IGNORECASE,
)
_DANGLING = re.compile(
    r"\b(?:of|in|to|with|for|and|or|the|a|an|my|our|at|on|about|that|as|by|from|than|into|like|"
    r"very|really|so|more|most|all|no|not|but|when|which|who|whose|I|am|be|being|get|getting|"
    r"some|any|every|each|their|because|without|over|how|what|why|where|if|new|good|make|take|"
    r"keep|let|put|give|using|(?:to )?help (?:me|us))$",
    re.IGNORECASE,
)
_GENERIC_THE = re.compile(
    r"the (?:beach|ocean|sea|seaside|outdoors|mountains?|snow|rain|cold|heat|gym|theatre|theater|"
    r"cinema|movies|piano|guitar|violin|cello|drums|flute|city|country|countryside|night|"
    r"mornings?|summer|winter|autumn|fall|spring|woods|forest|desert|sun|stars|moon|opera|ballet|"
    r"dark|water|internet|news)(?=$| and\b| in\b| or\b)|the (?:smell of|feeling of|taste of|"
    r"thrill of|challenge of|sense of|art of|process of|simplicity of|[A-Z])"
)
_RELATIVE = re.compile(r",?\s(?:who|whose|which|that|where|when)\s", re.IGNORECASE)
_DURATION = re.compile(
    r"\s+for (?:about |over |almost |nearly |at least |the (?:past|last) |a )?(?:(?:[\w-]+ )?"
    r"(?:days|weeks|months|years|while)|(?:an?|one|past|last) (?:day|week|month|year|decade))\b.*$"
)
_NOWADAYS = re.compile(r"\s(?:lately|recently|these days|right now|at the moment)(?=\s)", re.I)
_JOINED = re.compile(r",?\s(?:and|to)\s", re.IGNORECASE)
_POINTING_THAT = re.compile(
    r"\bthat$|\b(?:of|with|at|for|in|like|about|to|on|doing|enjoy|make|do|have|get|keep|take|see|"
    r"know) that\b",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiou])(?!uni|use|usu|eu|one\b|once\b)", re.IGNORECASE)
_DROPPED = re.compile(
    r"^(?:the|an?|my|our|their|some|to|any|of|drinking|eating|playing|using|going to|being)\s+"
)
_SAME_VERB = {"love": "like", "enjoy": "like", "adore": "like", "hate": "like", "am": "is"}


def phrase(raw: str, *, is_object: bool, is_definite: bool) -> str | None:
    """What follows a verb, cut where it ends and turned into the third person.

    Args:
        raw: The rest of the sentence.
        is_object: Whether it must stand as an object; else an adverb or nothing may stand there.
        is_definite: Whether "the …" may begin it.

    Returns:
        None where it says nothing by itself: a pronoun, somebody else, a day, too many words.

    >>> phrase("hiking because it's calming", is_object=True, is_definite=False)
    'hiking'
    >>> phrase("the colour", is_object=True, is_definite=False) is None
    True
    """
    text = raw.strip()
    if end := _CUT.search(" " + text):
        if _DOUBT.match(end[0]):
            return None
        text = (" " + text)[: end.start()].strip()
    text = _trimmed(as_list(text))
    if is_object or not is_definite:
        text = _DURATION.sub("", text)
    text = _NOWADAYS.sub("", text)
    if not text:
        return None if is_object else ""
    if not _says_something(text):
        # A shorter phrase may; the longer one says more.
        pieces = (_trimmed(cut.split(text, maxsplit=1)[0]) for cut in (_RELATIVE, _JOINED))
        found = next(filter(_says_something, pieces), None)
        if found is None or ends_in_adjective(found):
            return None
        text = found
    if is_object and _BAD_START.match(text):
        return None
    if not is_definite and re.match(r"the\b", text, re.I) and not _GENERIC_THE.match(text):
        return None
    return third_person(text)


def _trimmed(text: str) -> str:
    while (shorter := _TAIL.sub("", " " + text).strip(" ,.!'-~*")) != text:
        text = shorter
    return text


def _says_something(text: str) -> bool:
    return (
        0 < len(text.split()) <= _MAX_WORDS
        and not _POISON.search(text)
        and not _MARKUP.search(text)
        and not _DANGLING.search(text)
        and not _POINTING_THAT.search(text)
    )


def name(raw: str) -> str:
    """A proper name without the rest of a possessive."""
    return re.sub(r"'s$", "", raw.strip(" ,.!'-"))


def tidy(text: str) -> str:
    """A line with its spaces, articles and first letter in order."""
    text = re.sub(r"\s+", " ", text).strip(" ,")
    text = re.sub(r" named$", "", text)
    text = _ARTICLE.sub(lambda article: article[1] + "n ", text)
    return text[:1].upper() + text[1:]


def subject(text: str) -> str:
    """A subject in one form, so that "the tea" and "drinking tea" are one.

    >>> subject("love: drinking Tea"), subject("home")
    ('like:tea', 'home')
    """
    topic, colon, about = " ".join(text.lower().replace("color", "colour").split()).partition(":")
    about = about.strip(" .,!")
    while (shorter := _DROPPED.sub("", about)) != about:
        about = shorter
    about = "|".join(sorted(about.split("|")))  # which of two is preferred has one answer
    return _SAME_VERB.get(topic, topic) + colon + about
