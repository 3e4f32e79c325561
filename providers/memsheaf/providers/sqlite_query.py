"""What goes into the text index, and how a query asks it; raw text never reaches MATCH."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

from memsheaf.index import get_analyzer
from memsheaf.stack import SCOPE_FIELDS, MemoryRecord, Scope

__all__ = ["indexed", "match_expression"]

_WORD = re.compile(r"[^\W_]+")
_MOST_TERMS = 128
_PLAIN = get_analyzer("plain")


def indexed(record: MemoryRecord) -> tuple[str, str, str, str]:
    """The columns of a record: content, tags, extra terms, scope tokens."""
    tags = " ".join(record.tags)
    extra = " ".join(_extra_terms(f"{record.content} {tags}"))
    return _folded(record.content), _folded(tags), extra, " ".join(_scope_tokens(record.scope))


def match_expression(text: str, scope: Scope) -> str | None:
    """An FTS5 expression: the scope's tokens, and any of the query's terms; None without a term."""
    words = [f'"{word}"' for word in _WORD.findall(_folded(text))]
    terms = list(dict.fromkeys([*words, *(f'"{term}"' for term in _extra_terms(text))]))
    if not terms:
        return None
    wanted = f"{{content tags terms}} : ({' OR '.join(terms[-_MOST_TERMS:])})"
    owner = " AND ".join(f'scope : "{token}"' for token in _scope_tokens(scope))
    return f"{owner} AND {wanted}" if owner else wanted


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _extra_terms(text: str) -> list[str]:
    """Terms of our analyzer that unicode61 cannot make, written in letters that it keeps whole."""
    found = []
    for token in _PLAIN.tokenize(text):
        for term in _PLAIN.expand(token):
            if not (term.isascii() and term.isalnum()) and not _is_plain_word(term):
                found.append(f"x{term.encode('utf-8', 'replace').hex()}0"[:400])
    return list(dict.fromkeys(found))


def _is_plain_word(term: str) -> bool:
    """Whether unicode61 keeps the term as one token: letters of an alphabet with spaces."""
    return all(unicodedata.category(c)[0] in "LN" and ord(c) < 0x0E00 for c in term)


def _scope_tokens(scope: Scope) -> list[str]:
    """One token per set field; a hash, so that no name can be confused with another."""
    if scope.is_everyone:
        return []
    tokens = []
    for place, name in enumerate(SCOPE_FIELDS):
        value = getattr(scope, name)
        if value is not None:
            digest = blake2b(value.encode(), digest_size=16).hexdigest()
            tokens.append(f"s{place}{digest}0")
    return tokens
