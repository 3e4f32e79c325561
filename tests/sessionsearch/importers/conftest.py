from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import ConversationLog, Item
from memsheaf.sessionsearch.importers import ImportOptions, ImportSummary, import_paths
from memsheaf.stack import Scope

MIRA = Scope(user_id="mira")


class Desk:
    """Writes files, imports them, and shows what the log has then."""

    def __init__(self, folder: Path, log: ConversationLog) -> None:
        self.folder, self.log = folder, log

    def file(self, name: str, content: bytes | str | Iterable[object]) -> Path:
        """Bytes and text as they are, anything else as JSON lines."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            text = content if isinstance(content, str) else lines(*content)
            path.write_text(text, encoding="utf-8", newline="")
        return path

    def append(self, path: Path, text: str) -> None:
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(text)

    def user(self, uuid: str, words: str, session: str = "s") -> str:
        """A line of Claude Code: what a user said."""
        message = {"role": "user", "content": words}
        return json.dumps({"type": "user", "uuid": uuid, "sessionId": session, "message": message})

    def run(self, *paths: Path, **options: Any) -> ImportSummary:
        scope = options.pop("scope", MIRA)
        format = options.pop("format", None)
        progress = options.pop("progress", None)
        return import_paths(
            paths or [self.folder],
            self.log,
            scope,
            options=ImportOptions(**options),
            format=format,
            progress=progress,
        )

    def items(self, conversation: str) -> list[Item]:
        return self.log.items(conversation, MIRA, limit=None)

    def said(self, conversation: str) -> list[tuple[str | None, str]]:
        """Role and text of each message."""
        return [(i.role, i.text) for i in self.items(conversation) if i.type == "message"]

    def words(self, conversation: str = "claude-code:s") -> list[str]:
        return [text for _, text in self.said(conversation)]

    def everything(self) -> list[Item]:
        found = self.log.conversations(MIRA, limit=None)
        return [item for one in found for item in self.items(one.id)]

    def conversations(self) -> set[str]:
        return {one.id for one in self.log.conversations(MIRA, limit=None)}


def lines(*records: object) -> str:
    texts = (each if isinstance(each, str) else json.dumps(each) for each in records)
    return "".join(f"{text}\n" for text in texts)


@pytest.fixture
def desk(tmp_path: Path, log: ConversationLog) -> Desk:
    folder = tmp_path / "transcripts"
    folder.mkdir()
    return Desk(folder, log)
