"""JSON documents of chats: one value or one per line, and what the first object is called."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from typing import Any

from .archives import is_archive, members
from .base import ImportOptions
from .json_stream import JsonPart, json_parts
from .source import Position, Problem, Source, parse_json

__all__ = ["exported", "first_keys", "objects", "parts_of", "surest"]

_SURE_ENOUGH = 0.5
_SHRINKS = 6  # how much smaller chats are in an archive, for the progress
_WRAPPERS = ("conversations",)
_JSON = re.compile(r'\s*(?:\{\s*["}]|\[\s*[\[{\]])')
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}:]', re.DOTALL)


def first_keys(text: str, wrappers: Collection[str] = _WRAPPERS) -> set[str]:
    """The members of the first object of a JSON text, as far as it goes; none of other texts.

    Args:
        text: The head of a document.
        wrappers: Members whose arrays are what counts: the first object in one is told instead.

    >>> sorted(first_keys('[{"id": 1, "of": {"deeper": 2}, "text": "cut o'))
    ['id', 'of', 'text']
    >>> sorted(first_keys('{"body": {"messages": [{"role": "user"}]}}', ["messages"]))
    ['role']
    """
    keys: set[str] = set()
    if _JSON.match(text) is None:
        return keys
    depth = inside = armed = 0
    last = key = None  # the string just read, and the member whose value is due
    for token in _TOKEN.findall(text):
        if token == ":" and last is not None:
            key = last
            if depth == inside:
                keys.add(key)
        elif token == "[":
            depth += 1
            armed = depth if key in wrappers else 0
        elif token == "{":
            depth += 1
            if not inside or armed == depth - 1:
                keys, inside, wrappers = set(), depth, wrappers if not inside else ()
            armed = 0
        elif token in "}]":
            depth -= 1
            if depth < inside:
                break
        last = token[1:-1] if token[0] == '"' else None
        if token != ":":
            key = None
    return keys


def surest(source: Source, sure: Callable[[Source], float]) -> float:
    """How sure a format is of a source, or of the best member of an archive."""
    return max((certainty for certainty, _ in _documents(source, sure)), default=0.0)


def exported(
    source: Source,
    sure: Callable[[Source], float],
    own: Collection[str],
    options: ImportOptions,
) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    """The conversations of an export: of a file, or of the members of an archive.

    Args:
        source: A file or an archive.
        sure: How sure the format is of one document.
        own: Members of a conversation that stands alone in its file.
        options: How large a conversation may be.
    """
    before = 0
    for _, document in _documents(source, sure):
        if isinstance(document, Problem):
            yield document
            continue
        for found in objects(document, _WRAPPERS, own, options):
            if document is not source:  # of an archive the share of it that is read
                packed = (before + document.done.offset) // _SHRINKS
                source.done = Position(min(packed, source.size))
            yield found
        before += document.size


def _documents(
    source: Source, sure: Callable[[Source], float]
) -> Iterator[tuple[float, Source | Problem]]:
    if not is_archive(source):
        yield sure(source), source
        return
    for member in members(source):
        if isinstance(member, Problem):
            yield 0.0, member
            continue
        try:
            certainty = sure(member)
        except OSError as error:
            yield 0.0, Problem(None, f"a member of the archive cannot be read: {error}")
            continue
        if certainty >= _SURE_ENOUGH:
            yield certainty, member


def parts_of(source: Source, into: Collection[str], options: ImportOptions) -> Iterator[JsonPart]:
    """The parts of a JSON file, or of each line of a file of JSON lines; flaws are told in both.

    Args:
        source: The file.
        into: Members of an outermost object whose arrays are cut; lines are never cut.
        options: How large a part may be.
    """
    if not _has_lines(source):
        with closing(source.open()) as file:
            for part in json_parts(file, into, max_bytes=options.max_record):
                source.done = Position(part.offset, part.line)  # for the progress
                yield part
        return
    for index, record in enumerate(source.records(options.max_record)):
        if isinstance(record, Problem):
            yield JsonPart(None, None, index, record.line or 0, 0, record.reason)
        else:
            yield JsonPart(record.value, None, index, record.line, 0)


def objects(
    source: Source, into: Collection[str], own: Collection[str], options: ImportOptions
) -> Iterator[tuple[int, dict[str, Any]] | Problem]:
    """The objects of an array, of an object's array `into`, of lines, or the only one itself.

    Args:
        source: The file.
        into: Members that hold the list where it has a wrapper.
        own: Members of a single object that are kept; the rest of it is passed over.
        options: How large an object may be.

    Returns:
        Each with its line.
    """
    single: dict[str, Any] = {}
    for part in parts_of(source, into, options):
        if part.flaw:
            yield Problem(part.line, part.flaw)
        elif part.index is None and part.key is not None:
            if part.key in own:
                single[part.key] = part.value
        elif isinstance(part.value, dict):
            yield part.line, part.value
        else:
            yield Problem(part.line, "not a JSON object")
    if single:
        yield 1, single


def _has_lines(source: Source) -> bool:
    """Whether each line is an object of its own: the first one opens and closes it."""
    first, _, rest = source.head_text.lstrip().partition("\n")
    if not first.startswith("{") or len(first.strip()) < 2:
        return False
    if not rest and source.size > len(source.head):  # the first line is longer than the head
        return _closes(source)
    if not rest.strip():
        return False
    if first.rstrip().endswith(("{", "[", ",", ":")):
        return False
    if first.rstrip().endswith("}"):
        return True
    return any(_is_object(line) for line in rest.split("\n")[:10])  # the first one is a bad one


def _closes(source: Source) -> bool:
    with closing(source.open()) as file:
        last = b""
        while chunk := file.read(1 << 20):
            cut = chunk.find(b"\n")
            if cut >= 0:
                return (last + chunk[:cut]).rstrip().endswith(b"}")
            last = chunk[-16:]
    return False


def _is_object(line: str) -> bool:
    try:
        return isinstance(parse_json(line), dict)
    except ValueError:
        return False
