"""Exports of real services, where a folder of them is at hand: the messages a person counts.

`MEMSHEAF_TRANSCRIPTS` names the folder. A user's message is what the person wrote; an assistant's
is what it answered; each message of the shown branch counts once.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.sessionsearch.importers.conftest import Desk

FOLDER = os.environ.get("MEMSHEAF_TRANSCRIPTS", "")
COUNTS = {  # format, conversations, user, assistant
    "Sinity__sample-01.json": ("chatgpt", 1, 1, 2),
    "mikegraham__conversations.json": ("chatgpt", 5, 5, 5),
    "quentinous__conversations.json": ("chatgpt", 2, 3, 3),
    "osteele__claude-bakery-chat.json": ("claude-ai", 1, 2, 2),
    "osteele__conversations.json": ("claude-ai", 2, 3, 3),
    "yanndebray__conversations.json": ("claude-ai", 3, 4, 4),
}

pytestmark = pytest.mark.skipif(not FOLDER, reason="MEMSHEAF_TRANSCRIPTS names no folder")


@pytest.mark.parametrize("name", COUNTS)
def test_the_messages_that_a_person_counts(desk: Desk, name: str) -> None:
    found = [path for path in Path(FOLDER).rglob("*") if path.name == name]
    if not found:
        pytest.skip(f"no {name} there")
    format, conversations, user, assistant = COUNTS[name]
    (report,) = desk.run(found[0]).files
    assert (report.status, report.format, report.problem_count) == ("imported", format, 0)
    assert report.conversations == conversations
    roles = Counter(item.role for item in desk.everything() if item.type == "message")
    assert (roles["user"], roles["assistant"]) == (user, assistant)
    assert desk.run(found[0]).added == 0
