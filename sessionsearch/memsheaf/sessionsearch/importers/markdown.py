"""Plain Markdown chats: `## User` and `## Assistant`, or `**User:**`, with code fences kept."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

from .base import Event, Header, ImportOptions, Skipped
from .fences import fenced
from .render import chain, conversation_id, label, moment, some
from .source import Problem, Source
from .turns import Turns

__all__ = ["MarkdownImporter"]

_USER = ("user", "human", "you", "me", "prompt")
_ASSISTANT = ("assistant", "ai", "bot", "chatgpt", "claude", "gemini", "copilot", "response")
_ROLES = {
    **dict.fromkeys(_USER, "user"),
    **dict.fromkeys(_ASSISTANT, "assistant"),
    "system": "system",
    "tool": "tool",
}
_NAME = rf"(?P<name>{'|'.join(_ROLES)})(?P<said> said)?\b"
# What may stand behind a name: a model or a time.
_AFTER = r"\([^)]*\)|\[[^\]]*\]|[-\u2013\u2014|,@\u00b7].*(?:\d:\d\d|\d{4}-\d\d-\d\d).*"
_HEADING = re.compile(
    rf"(?P<mark>#{{1,6}})[ \t]+(?:[^\w\s]+[ \t]*)?{_NAME}[*_]*[ \t]*(?P<after>{_AFTER})?"
    r"[ \t]*(?::[*_]*[ \t]*(?P<words>.*))?",
    re.IGNORECASE,
)
_BOLD = re.compile(
    rf"(?P<mark>\*\*|__){_NAME}[ \t]*(?P<after>{_AFTER})?(?::(?P=mark)|(?P=mark)[ \t]*:)"
    r"[ \t]*(?P<words>.*)",
    re.IGNORECASE,
)
_HINT = re.compile(
    rf"^(?:#{{1,6}}[ \t]|\*\*|__).{{0,20}}?(?<![a-z])(?:{'|'.join(_USER)})(?![a-z])",
    re.IGNORECASE | re.MULTILINE,
)
_LONGEST_MARK = 2000  # characters of a line that may be one
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_TITLE = re.compile(r"#[ \t]+(?P<title>\S.*)")
_FIELD = re.compile(r"(?P<name>[\w-]+):[ \t]*(?P<value>.+)")
_IDS = ("conversation_id", "session_id", "uuid", "id")
_UNSURE = 16  # an id that is shorter says nothing outside of its own collection
_RULE = re.compile(r"[ \t]*([-*_])([ \t]*\1){2,}[ \t]*")


@dataclass(slots=True)
class _Turn:
    role: str
    line: int
    time: str | None
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The words, without the blank lines and the rules around them."""
        lines = self.lines[:]
        while lines and (not lines[-1].strip() or _RULE.fullmatch(lines[-1])):
            lines.pop()
        return "\n".join(lines).strip("\n").rstrip()


class MarkdownImporter:
    """Reads a chat as a document with a heading, or a name in bold, for each turn."""

    name = "markdown"
    incremental = False

    def detect(self, source: Source) -> float:
        """A turn of each side, under marks of one kind."""
        text = source.head_text
        if text.lstrip()[:1] in ("{", "[") or "\0" in text or not _HINT.search(text):
            return 0.0
        return 0.7 if _style(text.split("\n")) is not None else 0.0

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        """The one conversation."""
        if source.size > options.max_record:
            yield Problem(None, f"longer than {options.max_record} bytes")
            return
        with closing(source.open()) as file:
            text = file.read().decode("utf-8", "replace").removeprefix("\ufeff")
        lines = [line.rstrip("\r\n") for line in io.StringIO(text)]
        style = _style(lines)
        if style is None:
            yield Problem(None, "no turns of a user and an assistant")
            return
        preamble, turns = _turns(lines, style)
        yield from _events(preamble, turns)


def _style(lines: list[str]) -> str | None:
    """The kind of mark that the first user and the first assistant share."""
    seen: dict[str, set[str]] = {}
    for line, inside in fenced(lines):
        mark = None if inside else _mark(line)
        if mark is not None:
            roles = seen.setdefault(mark[0], set())
            roles.add(mark[1])
            if {"user", "assistant"} <= roles:
                return mark[0]
    return None


def _mark(line: str) -> tuple[str, str, str, str] | None:
    """Kind of mark, role, what stands behind the name, and words on the same line."""
    if line[:1] not in ("#", "*", "_") or len(line) > _LONGEST_MARK:
        return None
    found = _HEADING.fullmatch(line.rstrip()) or _BOLD.fullmatch(line)
    if found is None:
        return None
    kind = "said" if found["said"] else found["mark"]  # sites give the two sides unequal levels
    return kind, _ROLES[found["name"].lower()], found["after"] or "", found["words"] or ""


def _turns(lines: list[str], style: str) -> tuple[list[str], list[_Turn]]:
    preamble: list[str] = []
    turns: list[_Turn] = []
    for number, (line, inside) in enumerate(fenced(lines), 1):
        mark = None if inside else _mark(line)
        if mark is not None and mark[0] == style:
            time = _TIME.search(mark[2])
            turns.append(_Turn(mark[1], number, time[0] if time else None))
            if mark[3]:
                turns[-1].lines.append(mark[3])
        elif turns:
            turns[-1].lines.append(line)
        else:
            preamble.append(line)
    return preamble, turns


def _events(preamble: list[str], turns: list[_Turn]) -> Iterator[Event]:
    fields = dict[str, str]()
    title = None
    for line in preamble:
        heading = _TITLE.fullmatch(line)
        named = _FIELD.fullmatch(line.replace("*", "").lstrip("-> \t"))
        if heading and title is None:
            title = heading["title"].strip()
        elif named:
            fields.setdefault(named["name"].lower(), named["value"].strip().strip("\"'"))
    keys: list[str] = []
    for turn in turns:
        keys.append(chain(keys[-1] if keys else "", turn.role, turn.text))
    answered = next((n for n, turn in enumerate(turns) if _is_answer(turns, n)), len(turns) - 1)
    ids = (label(fields.get(name)) for name in _IDS)
    source_id = next((found for found in ids if found and len(found) >= _UNSURE), None)
    conversation = conversation_id("markdown", source_id or keys[answered])
    dates = (_TIME.search(fields.get(name, "")) for name in ("created", "created_at", "date"))
    yield Header(
        conversation,
        title or fields.get("title"),
        some(format="markdown", source_id=source_id, model=fields.get("model")),
        moment(next((found[0] for found in dates if found), None)),
    )
    made = Turns(conversation)
    for turn, key in zip(turns, keys, strict=True):
        made.line = turn.line
        time = moment(turn.time)
        if not turn.text:
            yield Skipped("empty message")
        elif turn.role == "tool":
            yield made.tool_result(turn.text, key=key, time=time)
        else:
            yield made.message(turn.text, turn.role, key=key, time=time)


def _is_answer(turns: list[_Turn], place: int) -> bool:
    asked = any(turn.role == "user" for turn in turns[:place])
    return asked and turns[place].role == "assistant"
