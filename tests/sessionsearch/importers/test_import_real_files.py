"""Transcripts of real programs, where a folder of them is at hand.

`MEMSHEAF_TRANSCRIPTS` names the folder. The counts were made by reading the files: what a person
typed to the model, and what the model said to a person, each once; prompts of sub-agents, output
of commands, and tools are not counted.
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
COUNTS = {  # user, assistant
    "Sinity__claude-normalization-main.jsonl": (2, 4),
    "daaain__edge_cases.jsonl": (3, 2),
    "jazzyalex__agent-a0ad4f44468bdf20d.jsonl": (0, 1),
    "jazzyalex__subagent-parent.jsonl": (1, 1),
    "obra__long-conversation.jsonl": (15, 33),
    "obra__short-conversation.jsonl": (1, 1),
    "obra__tiny-conversation.jsonl": (2, 3),
    "anthropics__sample-turns.json": (0, 4),
    "jazzyalex__codex_050_legacy.jsonl": (0, 0),
    "zippoxer__test-codex.jsonl": (2, 2),
    "jazzyalex__jsonl_v040.jsonl": (1, 1),
    "gemini-cli/jazzyalex__small.json": (1, 1),
    "wesm__tool_calls.json": (1, 1),
    "Sinity__hermes-session.jsonl": (1, 1),
    "hermes/jazzyalex__small.json": (1, 1),
}

pytestmark = pytest.mark.skipif(not FOLDER, reason="MEMSHEAF_TRANSCRIPTS names no folder")


@pytest.mark.parametrize("name", COUNTS)
def test_the_messages_that_a_person_counts(desk: Desk, name: str) -> None:
    found = [path for path in Path(FOLDER).rglob("*") if str(path).endswith(name)]
    if not found:
        pytest.skip(f"no {name} there")
    report = desk.run(found[0]).files[0]
    assert report.status == "imported"
    roles = Counter(item.role for item in desk.everything() if item.type == "message")
    assert (roles["user"], roles["assistant"]) == COUNTS[name]
    again = desk.run(found[0])
    assert again.added == 0


def test_every_file_is_read_to_its_end(desk: Desk) -> None:
    summary = desk.run(Path(FOLDER))
    assert summary.added > 0
    assert summary.count("failed") == 0
    assert desk.run(Path(FOLDER)).added == 0
