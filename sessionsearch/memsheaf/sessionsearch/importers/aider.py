"""Aider: `.aider.chat.history.md`, which holds all sessions of a repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import BinaryIO

from .base import Event, Header, ImportOptions, Skipped
from .fences import fenced
from .render import chain, conversation_id, moment, some
from .source import Source
from .turns import Turns

__all__ = ["AiderImporter"]

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_MODEL = re.compile(r"^(?:Main model|Models?): (\S+)", re.MULTILINE)
_LOOKED_AT = 400  # lines of the head
_NAME = ".aider.chat.history.md"


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
        with closing(source.open()) as file:
            until = next((start for line in _lines(file) if (start := _start(line))), None)
        with closing(source.open()) as file:
            history = _History(file)
            while not history.ended:
                started = history.started
                yield from _session(started, until, project, history.session())


class _History:
    """The lines of a history, session by session.

    Attributes:
        started: When the next session started; None before the first.
        ended: Whether there is none.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._lines = _lines(file)
        self.started: str | None = None
        self.ended = False

    def session(self) -> Iterator[str]:
        for line in self._lines:
            if start := _start(line):
                self.started = start
                return
            yield line
        self.ended = True


def _lines(file: BinaryIO) -> Iterator[str]:
    while raw := file.readline(1 << 20):
        yield raw.decode("utf-8", "replace").rstrip("\r\n").removeprefix("\ufeff")


def _start(line: str) -> str | None:
    found = _START.fullmatch(line) if line.startswith("# aider") else None
    return found[1] if found else None


def _session(
    started: str | None, until: str | None, project: str, lines: Iterator[str]
) -> Iterator[Event]:
    turns: Turns | None = None
    waiting: list[tuple[str, str]] = []  # what stands before the first prompt, which tells the id
    key = ""
    for role, text in _blocks(fenced(lines)):
        waiting.append((role, text))
        if turns is None and role == "user":
            original = f"{(started or 'before').replace(' ', 'T')}-{chain('', text)[:12]}"
            turns = Turns(conversation_id("aider", original))
            model = _MODEL.search("\n".join(text for role, text in waiting if role == "tool"))
            about = {"project": project, "model": model[1] if model else None}
            metadata = some(format="aider", source_id=started, **about)
            yield Header(turns.conversation, None, metadata, moment(started or until))
        if turns is None:
            continue
        for role, text in waiting:
            key = chain(key, role, text)
            if role == "tool":
                yield turns.tool_result(text, key=key)
            else:
                yield turns.message(text, role, key=key)
        waiting.clear()
    if waiting:
        yield Skipped("session without a prompt")


def _blocks(lines: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, str]]:
    """Role and text of each stretch of lines of one speaker.

    A blank line ends a prompt. It does not end output or an answer.
    """
    role, block = "", list[str]()
    for line, inside in lines:
        speaker, text = ("assistant", line) if inside else _speaker(line)
        if not text.strip() and speaker == "assistant" and role != "assistant":
            if role == "user":
                yield from _block(role, block)
                role, block = "", []
            continue
        if speaker != role:
            yield from _block(role, block)
            role, block = speaker, []
        block.append(text)
    yield from _block(role, block)


def _block(role: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    text = "\n".join(lines).strip("\n").rstrip()
    if text.strip():
        yield role, text


def _speaker(line: str) -> tuple[str, str]:
    if line.startswith("#### ") or line.rstrip() == "####":
        return "user", line[5:].rstrip()
    if line.startswith("> ") or line.rstrip() == ">":
        return "tool", line[2:].rstrip()
    return "assistant", line
