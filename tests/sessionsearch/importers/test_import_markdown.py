"""Markdown chats and Aider's history: whose words, what a fence holds, and odd files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.sessionsearch import ConversationLog
from memsheaf.sessionsearch.importers import (
    Entry,
    Header,
    ImportOptions,
    Problem,
    Skipped,
    Source,
    import_paths,
)
from memsheaf.sessionsearch.importers.aider import AiderImporter
from memsheaf.sessionsearch.importers.fences import fenced
from memsheaf.sessionsearch.importers.markdown import MarkdownImporter
from memsheaf.stack import Scope

MARKDOWN, AIDER = MarkdownImporter(), AiderImporter()
MIRA = Scope(user_id="mira")


class Read:
    def __init__(self, importer: Any, source: Source) -> None:
        self.sure: float = importer.detect(source)
        events = list(importer.read(source, ImportOptions()))
        self.headers = [event for event in events if isinstance(event, Header)]
        self.entries = [event for event in events if isinstance(event, Entry)]
        self.problems = [event for event in events if isinstance(event, Problem)]
        self.skipped = [event.kind for event in events if isinstance(event, Skipped)]

    @property
    def told(self) -> list[tuple[str | None, str]]:
        return [(entry.item.role, entry.item.text) for entry in self.entries]


Reader = Callable[[Any, str], Read]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    def reading(importer: Any, text: str) -> Read:
        path = tmp_path / "chat.md"
        path.write_bytes(text.encode("utf-8"))
        return Read(importer, Source(path))

    return reading


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("## User\n\n", "## Assistant\n\n"),
        ("# Human:\n", "# Claude:\n"),
        ("### **You**\n", "### **ChatGPT** (gpt-x)\n"),
        ("## \U0001f9d1\u200d\U0001f4bb User\n", "## \U0001f916 AI - 2026-01-05 10:00\n"),
        ("**User:** ", "**Assistant:** "),
        ("**User**: ", "**Assistant**:\n"),
        ("__me:__\n", "__bot:__\n"),
        ("## Prompt:\n", "## Response:\n"),
        ("## User: ", "## Assistant: "),
        ("##### You said:\n", "###### ChatGPT said:\n"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_kind_of_mark(read: Reader, asked: str, answered: str, end: str) -> None:
    text = (
        f"\ufeff# Tides\n\n{asked}When?\n\n---\n\n{answered}At nine.\n\n- high\n\n{asked}Thanks\n"
    )
    found = read(MARKDOWN, text.replace("\n", end))
    assert found.sure == 0.7
    assert found.told == [
        ("user", "When?"),
        ("assistant", "At nine.\n\n- high"),
        ("user", "Thanks"),
    ]
    assert [entry.item.origin for entry in found.entries] == ["user", "agent", "user"]
    if not asked.startswith("# "):
        assert found.headers[0].title == "Tides"


def test_times_ids_and_models_of_the_preamble(read: Reader) -> None:
    text = (
        "---\ntitle: 'Tide talk'\ndate: 2026-01-05\nmodel: gpt-x\n"
        "conversation_id: 0000-tide-0000-1234\n---\n"
        "## User (2026-01-05 09:30)\nWhen?\n## Assistant\nNine.\n## System\nBe brief.\n"
        "## Tool\noutput\n## User\n\n"
    )
    found = read(MARKDOWN, text)
    (header,) = found.headers
    assert header.conversation == "markdown:0000-tide-0000-1234"
    assert header.title == "Tide talk"
    assert header.metadata["model"] == "gpt-x"
    assert str(header.started) == "2026-01-05 00:00:00+00:00"
    assert str(found.entries[0].item.created_at) == "2026-01-05 09:30:00+00:00"
    assert [(e.item.type, e.item.origin) for e in found.entries] == [
        ("message", "user"),
        ("message", "agent"),
        ("event", "automation"),
        ("tool_result", "tool"),
    ]
    assert found.skipped == ["empty message"]


def test_marks_in_fences_and_of_another_kind_are_words(read: Reader) -> None:
    answer = (
        "Write:\n\n```md\n## User\nhello\n~~~\n```\n\n### User\n\n**User:** x\n\n## User stories"
    )
    found = read(MARKDOWN, f"## User\nHow?\n## Assistant\n{answer}\n## User\nThanks\n")
    assert found.told == [("user", "How?"), ("assistant", answer), ("user", "Thanks")]


def test_a_fence_that_nobody_closes_swallows_no_turn(read: Reader) -> None:
    found = read(MARKDOWN, "## User\nHow?\n## Assistant\n```py\nx = 1\n## User\nThanks\n")
    assert found.told == [("user", "How?"), ("assistant", "```py\nx = 1"), ("user", "Thanks")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Notes\n\nNothing.\n",
        "## User\n\nonly one side\n",
        "## User\nx\n### Assistant\ny\n",
        "## User guide\n\n## Assistant manager\n",
        "```\n## User\na\n## Assistant\nb\n```\n",
        '{"a": "\n## User\nx\n## Assistant\ny\n"}',
    ],
)
def test_what_is_no_chat_is_not_taken_for_one(read: Reader, text: str) -> None:
    assert read(MARKDOWN, text).sure == 0


def test_the_same_chat_twice_and_grown_is_one(tmp_path: Path) -> None:
    text = "## User\nWhen is the tide?\n## Assistant\nAt nine.\n"
    path, copy = tmp_path / "a.md", tmp_path / "b.md"
    with ConversationLog(tmp_path / "log.db") as log:
        path.write_text(text)
        assert import_paths(path, log, MIRA).added == 2
        path.write_text(text + "## User\nyes\n## Assistant\nFine.\n## User\nyes\n")
        copy.write_text(path.read_text())
        assert import_paths([path, copy], log, MIRA).added == 3
        (kept,) = log.conversations(MIRA)
        assert (kept.title, kept.item_count) == ("When is the tide?", 5)


HISTORY = """\
#### what is left of an older session

An answer.

# aider chat started at 2024-05-01 10:00:00

> Aider v0.50.1
> Main model: gpt-x with diff edit format
> Git repo: .git with 3 files

#### /add pump.py

> Added pump.py to the chat

#### fix the pump
#### and the valve

I will.

pump.py
```python
<<<<<<< SEARCH
#### not the user
> not the program
=======
pass
>>>>>>> REPLACE
```

> Applied edit to pump.py

> Commit 1234abc

# aider chat started at 2024-05-02 11:00:00

> Aider v0.50.1

# aider chat started at 2024-05-03 12:00:00

#### yes

> ok

#### yes

```py
cut off here
"""


def test_aider_sessions_and_speakers(read: Reader, tmp_path: Path) -> None:
    found = read(AIDER, HISTORY)
    assert found.sure > 0.6
    by: dict[str, list[tuple[str | None, str]]] = {}
    for entry, told in zip(found.entries, found.told, strict=True):
        by.setdefault(entry.conversation, []).append(told)
    before, first, third = by.values()
    assert before == [("user", "what is left of an older session"), ("assistant", "An answer.")]
    assert [role for role, _ in first] == ["tool", "user", "tool", "user", "assistant", "tool"]
    assert first[1] == ("user", "/add pump.py")
    assert first[3] == ("user", "fix the pump\nand the valve")
    assert "#### not the user\n> not the program" in first[4][1]
    assert first[5] == ("tool", "Applied edit to pump.py\nCommit 1234abc")
    assert third == [
        ("user", "yes"),
        ("tool", "ok"),
        ("user", "yes"),
        ("assistant", "```py\ncut off here"),
    ]
    assert found.skipped == ["session without a prompt"]
    assert found.headers[1].conversation.startswith("aider:2024-05-01T10:00:00-")
    assert found.headers[1].metadata == {
        "format": "aider",
        "source_id": "2024-05-01 10:00:00",
        "project": str(tmp_path),
        "model": "gpt-x",
    }
    assert [str(header.started) for header in found.headers] == [
        "2024-05-01 10:00:00+00:00",  # before that
        "2024-05-01 10:00:00+00:00",
        "2024-05-03 12:00:00+00:00",
    ]
    keys = {(entry.conversation, entry.item.key) for entry in found.entries}
    assert len(keys) == len(found.entries)


def test_aider_grown_history_adds_its_end(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    with ConversationLog(tmp_path / "log.db") as log:
        path.write_text(HISTORY)
        assert import_paths(path, log, MIRA).added == 12
        path.write_text(HISTORY + "```\n\n#### thanks\n")
        assert import_paths(path, log, MIRA).added == 2  # the answer that was cut is whole now
        assert len(log.conversations(MIRA)) == 3


def test_aider_without_a_start_and_what_is_not_aider(read: Reader, tmp_path: Path) -> None:
    answer = f"An answer whose start was cut off.\n\n{HISTORY}"
    assert read(AIDER, answer).sure == 0
    named = tmp_path / ".aider.chat.history.md"
    named.write_text(answer)
    assert AIDER.detect(Source(named)) > 0.6
    assert read(AIDER, f'"""A test."""\n\nHISTORY = """\n{HISTORY}"""\n').sure == 0
    assert read(AIDER, f"# Aider\n\n```markdown\n{HISTORY}```\n").sure == 0
    assert read(AIDER, "#### one\n\n> out\n\n#### two\n\n> out\n").sure >= 0.5
    assert read(AIDER, "# Notes\n\n#### a heading\n\n> a quotation\n").sure == 0
    assert read(
        AIDER, "\ufeff# aider chat started at 2024-05-01 10:00:00\r\n\r\n#### x\r\n"
    ).told == [("user", "x")]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["```", "~~~~", "``` py", "#### u", "> t", "a", "", "````"])))
def test_fences_lose_no_line(lines: list[str]) -> None:
    assert [line for line, _ in fenced(lines)] == lines


def test_many_open_fences_take_no_time(read: Reader) -> None:
    text = "## User\nx\n## Assistant\n" + "".join(
        "`" * (3 + n % 50) + " py\n" for n in range(20_000)
    )
    assert read(MARKDOWN, text).told[0] == ("user", "x")


def test_aider_a_turn_above_the_limit_is_told_with_its_line_and_the_rest_is_read(
    tmp_path: Path,
) -> None:
    text = (
        "# aider chat started at 2024-05-01 10:00:00\n\n#### first\n\n"
        + "a lot of code\n" * 20
        + "\n#### second\n\n"
        + "x" * 500
        + "\n\n#### third\n\n> done\n\n"
        + "> output\n" * 30
        + "\n# aider chat started at 2024-05-02 10:00:00\n\n"
        + "> nobody asked\nan answer\n" * 5
        + "\n#### fourth\nYes.\n"
    )
    path = tmp_path / "chat.md"
    path.write_text(text)
    events = list(AIDER.read(Source(path), ImportOptions(max_record=100)))
    said = [(each.item.role, each.item.text) for each in events if isinstance(each, Entry)]
    assert said == [
        ("user", "first"),
        ("user", "second"),
        ("user", "third"),
        ("user", "fourth"),
        ("assistant", "Yes."),
    ]
    assert [each for each in events if isinstance(each, Problem)] == [
        Problem(5, "longer than 100 bytes"),
        Problem(28, "longer than 100 bytes"),
        Problem(32, "longer than 100 bytes"),
        Problem(76, "more than 100 bytes before a prompt"),
    ]


def test_fences_look_no_further_than_a_bound() -> None:
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield "x" * 1_000_000

    next(fenced(lines()))
    assert read < 10


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_aider_a_heading_of_the_model_is_no_prompt(read: Reader, end: str) -> None:
    text = (
        "# aider chat started at 2024-05-01 10:00:00\n\n> Aider v0.86  \n\n"
        "#### fix the pump  \n####   \n#### and the valve  \n\n"
        "#### Step 1\nPrime it.\n\n####\n\n#### Step 2\nOpen it.\n\n> a quotation\n\n"
        "#### thanks  \n"
    )
    assert read(AIDER, text.replace("\n", end)).told == [
        ("tool", "Aider v0.86"),
        ("user", "fix the pump\n\nand the valve"),
        ("assistant", "#### Step 1\nPrime it.\n\n####\n\n#### Step 2\nOpen it."),
        ("tool", "a quotation"),
        ("user", "thanks"),
    ]
    bare = read(AIDER, "# aider chat started at 2024-05-01 10:00:00\n\n#### Step 1\nPrime it.\n")
    assert bare.told == [("user", "Step 1"), ("assistant", "Prime it.")]
