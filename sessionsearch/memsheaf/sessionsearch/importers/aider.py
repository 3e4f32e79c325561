"""Aider: `.aider.chat.history.md`, which holds all sessions of a repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO

from .base import Event, Header, ImportOptions, Skipped
from .fences import fenced
from .render import chain, conversation_id, moment, some
from .source import Problem, Source
from .turns import Turns

__all__ = ["AiderImporter"]

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_MODEL = re.compile(r"^(?:Main model|Models?): (\S+)", re.MULTILINE)
_PROMPT = re.compile(r"####(?: (?P<text>.*))?\s*", re.DOTALL)
_ENDED = re.compile(r"####(?: (?P<text>.*))?  \r?", re.DOTALL)
_LOOKED_AT = 400  # lines of the head
_NAME = ".aider.chat.history.md"
_PIECE = 1 << 20  # bytes of a line that is passed over


class AiderImporter:
    """Reads a history: lines with `####` are the user's, those with `>` the program's output."""

    name = "aider"
    incremental = False

    def detect(self, source: Source) -> float:
        """The line that opens a session, or prompts and output where a file begins in one."""
        lines = [line for line in source.head_text.split("\n")[:_LOOKED_AT] if line.strip()]
        if not lines:
            return 0.0
        if _START.fullmatch(lines[0]):
            return 0.95
        starts = sum(_START.fullmatch(line) is not None for line in lines)
        prompts = sum(line.startswith("#### ") for line in lines)
        output = sum(line.startswith("> ") for line in lines)
        within = lines[0].startswith(("#### ", "> ")) or source.path.name == _NAME
        return 0.7 if within and (starts or (prompts > 1 and output > 1)) else 0.0

    def read(self, source: Source, options: ImportOptions) -> Iterator[Event]:
        """Each session in turn; the part of one with which the file begins is one too."""
        project = str(source.path.resolve().parent)
        prompt = _prompts(source.head_text)
        with closing(source.open()) as file:
            lines = _lines(file, options.max_record)
            until = next((start for line in lines if (start := _start(line))), None)
        with closing(source.open()) as file:
            history = _History(file, options.max_record)
            while not history.ended:
                started = history.started
                turns = _turns(history.session(), history.number, options.max_record, prompt)
                yield from _session(started, until, project, turns, options.max_record)


def _prompts(head: str) -> re.Pattern[str]:
    """What a line of a prompt looks like in a history.

    Aider ends it with two spaces. A heading of the model's has none; where an editor took them
    all away it cannot be told from a prompt.
    """
    return _ENDED if any(map(_ENDED.fullmatch, head.split("\n"))) else _PROMPT


class _History:
    """The lines of a history, session by session.

    Attributes:
        started: When the next session started; None before the first.
        number: Of the line that was read last.
        ended: Whether there is no further session.
    """

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._lines = _lines(file, limit)
        self.started: str | None = None
        self.number = 0
        self.ended = False

    def session(self) -> Iterator[str | None]:
        for line in self._lines:
            self.number += 1
            if start := _start(line):
                self.started = start
                return
            yield line
        self.ended = True


@dataclass(frozen=True, slots=True)
class _Turn:
    """A stretch of lines of one speaker, from a line on; no text where there is too much of it."""

    role: str
    line: int
    text: str | None


def _lines(file: BinaryIO, limit: int) -> Iterator[str | None]:
    """Each line, or None for one above the limit, of which no more is held."""
    while raw := file.readline(limit + 1):
        if len(raw) <= limit or raw.endswith(b"\n"):
            yield raw.decode("utf-8", "replace").rstrip("\r\n").removeprefix("\ufeff")
            continue
        while raw and not raw.endswith(b"\n"):
            raw = file.readline(_PIECE)
        yield None


def _start(line: str | None) -> str | None:
    found = _START.fullmatch(line) if line is not None and line.startswith("# aider") else None
    return found[1] if found else None


def _session(
    started: str | None, until: str | None, project: str, told: Iterable[_Turn], limit: int
) -> Iterator[Event]:
    turns: Turns | None = None
    waiting: list[_Turn] = []  # what stands before the first prompt, which tells the id
    size, key = 0, ""
    for turn in told:
        waiting.append(turn)
        size += len(turn.text or "")
        if turns is None and turn.role == "user" and turn.text is not None:
            original = f"{(started or 'before').replace(' ', 'T')}-{chain('', turn.text)[:12]}"
            turns = Turns(conversation_id("aider", original))
            outputs = (each.text for each in waiting if each.role == "tool" and each.text)
            model = _MODEL.search("\n".join(outputs))
            about = {"project": project, "model": model[1] if model else None}
            metadata = some(format="aider", source_id=started, **about)
            yield Header(turns.conversation, None, metadata, moment(started or until))
        if turns is None:
            if size > limit:
                yield Problem(turn.line, f"more than {limit} bytes before a prompt")
                waiting, size = [], 0
            continue
        for each in waiting:
            key = chain(key, each.role, each.text or "")
            turns.line = each.line
            if each.text is None:
                yield Problem(each.line, f"longer than {limit} bytes")
            elif each.role == "tool":
                yield turns.tool_result(each.text, key=key)
            else:
                yield turns.message(each.text, each.role, key=key)
        waiting = []
    if waiting:
        yield Skipped("session without a prompt")


def _turns(
    lines: Iterable[str | None], before: int, limit: int, prompt: re.Pattern[str]
) -> Iterator[_Turn]:
    """Each stretch of lines of one speaker.

    A blank line ends a prompt. It does not end output or an answer.
    """
    role, block, begins, size = "", list[str](), before, 0
    for number, (line, inside) in enumerate(fenced(lines), before + 1):
        speaker, text = ("assistant", line) if inside else _speaker(line, prompt)
        if text is not None and not text.strip() and speaker == "assistant" != role:
            if role == "user":
                yield from _turn(role, begins, block, size > limit)
                role, block, size = "", [], 0
            continue
        if speaker != role:
            yield from _turn(role, begins, block, size > limit)
            role, block, begins, size = speaker, [], number, 0
        size += limit + 1 if text is None else len(text) + 1
        if size > limit:
            block.clear()
        else:
            block.append(text or "")
    yield from _turn(role, begins, block, size > limit)


def _turn(role: str, line: int, lines: list[str], too_long: bool) -> Iterator[_Turn]:
    text = "\n".join(lines).strip("\n").rstrip()
    if too_long or text.strip():
        yield _Turn(role, line, None if too_long else text)


def _speaker(line: str | None, prompt: re.Pattern[str]) -> tuple[str, str | None]:
    if line is None:
        return "assistant", None
    if line.startswith("####") and (found := prompt.fullmatch(line)):
        return "user", (found["text"] or "").rstrip()
    if line.startswith("> ") or line.rstrip() == ">":
        return "tool", line[2:].rstrip()
    return "assistant", line
