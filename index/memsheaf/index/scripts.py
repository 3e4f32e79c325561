# ruff: noqa: RUF001, RUF002  (look-alike letters are the subject)
"""Unicode rules: normalisation, folding, and the scripts that put no spaces between words."""

import re
import unicodedata
from functools import cache

# Optional vowel signs of Arabic and Hebrew, tatweel, joiners, selectors, bidi marks:
# no word differs by them.
_IGNORED = (
    "\u00ad\u034f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u061c\u0640\u064b-\u0652\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
)
_REPLACED = {
    **dict.fromkeys("\u02bc\u2018\u2019\u201b\u2032", "'"),  # typographic apostrophes
    **dict.fromkeys("\u2010\u2212", "-"),  # hyphen (NFKC has made U+2011 one), minus
}

# Latin letters that Unicode does not take apart into a base letter and a mark.
_LETTERS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
# Latin, Greek and ё only: in other scripts marks tell letters apart (й is no и).
_ACCENTED = re.compile("([a-z\u0250-\u02af\u0370-\u03ff])[\u0300-\u036f]+|(\u0435)\u0308")

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = (
    _HAN + "\u3041-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\U0001b000-\U0001b16f"
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"  # Hangul: particles are written onto the word
    "\u0e01-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff"  # Thai to Khmer
    "\u1950-\u19df\u1a20-\u1aaf\ua980-\ua9df"  # Tai scripts, Javanese
)


# Classes of so many ranges take milliseconds to compile, and many a process sees ASCII alone.
@cache
def _special() -> re.Pattern[str]:
    return re.compile(f"[{_IGNORED}{''.join(_REPLACED)}]")


@cache
def _han() -> re.Pattern[str]:
    return re.compile(f"[{_HAN}]")


@cache
def _any_unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


def normalize(text: str) -> str:
    """Return `text` in NFKC, without invisible characters, with plain apostrophes and hyphens.

    >>> normalize("l’e\u0301te\u0301 ＡＢＣ co\u00adoperate")
    "l'été ABC cooperate"
    """
    if text.isascii():
        return text
    # NFKC would glue the sign to its word: Foo™ must not become FooTM.
    text = unicodedata.normalize("NFKC", text.replace("™", " "))
    special = _special()
    if not special.search(text):
        return text
    text = special.sub(lambda match: _REPLACED.get(match[0], ""), text)
    return unicodedata.normalize("NFKC", text)


def fold(word: str) -> str:
    """Return `word` without case, and without accents where the script is Latin or Greek.

    >>> fold("Nîmes"), fold("ΑΘΉΝΑ"), fold("Straße"), fold("Łódź")
    ('nimes', 'αθηνα', 'strasse', 'lodz')
    """
    word = word.casefold()
    if word.isascii():
        return word
    word = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", word).translate(_LETTERS))
    return unicodedata.normalize("NFC", _ACCENTED.sub(r"\1\2", word))


@cache
def marks() -> str:
    r"""Return the combining marks as the inside of a character class; `\w` leaves them out."""
    ranges: list[list[int]] = []
    for code in range(0x300, 0x20000):
        if unicodedata.category(chr(code)) not in ("Mn", "Mc"):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


@cache
def _unspaced() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern of one character with its marks, and of a run of them."""
    character = rf"(?=[{_UNSPACED}])\w[{marks()}]*"
    return re.compile(character), re.compile(f"((?:{character})+)")


def is_unspaced(token: str) -> bool:
    """Say whether `token` is made of characters of scripts without spaces."""
    if token.isascii() or not _any_unspaced().search(token):
        return False
    return _unspaced()[1].fullmatch(token) is not None


def split_unspaced(text: str) -> list[str]:
    """Split `text` at white space, and runs of unspaced scripts into overlapping pairs.

    A Chinese character is a word as often as not, so it is given by itself too; in the other
    scripts only a character that stands alone is.

    >>> split_unspaced("Python入門 กาแฟ")
    ['Python', '入', '入門', '門', 'กา', 'าแ', 'แฟ']
    """
    if text.isascii() or not _any_unspaced().search(text):
        return text.split()
    character, run = _unspaced()
    tokens: list[str] = []
    for i, piece in enumerate(run.split(text)):
        if i % 2 == 0:
            tokens.extend(piece.split())
            continue
        characters = character.findall(piece)
        following = [*characters[1:], ""]
        for this, then in zip(characters, following, strict=True):
            if _han().match(this) or len(characters) == 1:
                tokens.append(this)
            if then:
                tokens.append(this + then)
    return tokens
