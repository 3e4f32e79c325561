"""ChatGPT and Claude.ai exports: whose words, which branch, and what a hostile file does."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memsheaf.sessionsearch import NewItem
from memsheaf.sessionsearch.importers import Entry, Header, ImportOptions, Problem, Skipped, Source
from memsheaf.sessionsearch.importers.chatgpt import ChatGPTImporter
from memsheaf.sessionsearch.importers.claude_ai import ClaudeAiImporter

CHATGPT, CLAUDE = ChatGPTImporter(), ClaudeAiImporter()
ALL = ImportOptions(branches="all")


class Read:
    """What an importer makes of a file."""

    def __init__(self, importer: Any, path: Path, options: ImportOptions) -> None:
        source = Source(path)
        self.sure: float = importer.detect(source)
        self.headers: list[Header] = []
        self.items: list[NewItem] = []
        self.problems: list[Problem] = []
        self.skipped: list[str] = []
        self.conversations: list[str] = []
        for event in importer.read(source, options):
            if isinstance(event, Header):
                self.headers.append(event)
            elif isinstance(event, Entry):
                self.items.append(event.item)
                self.conversations.append(event.conversation)
            elif isinstance(event, Skipped):
                self.skipped.append(event.kind)
            else:
                self.problems.append(event)

    def told(self) -> list[tuple[str, str | None, str]]:
        return [(item.type, item.role, item.text) for item in self.items]

    def said(self, role: str) -> list[str]:
        return [i.text for i in self.items if i.type == "message" and i.role == role]


Reader = Callable[..., Read]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    def reading(
        importer: Any, content: Any, options: ImportOptions | None = None, name: str = "export.dat"
    ) -> Read:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
        return Read(importer, path, options or ImportOptions())

    return reading


def node(
    id_: str, parent: str | None, role: str = "user", text: str | None = "", **more: Any
) -> dict[str, Any]:
    message: dict[str, Any] | None = None
    if text is not None:
        content = {"content_type": "text", "parts": [text]}
        message = {"id": id_, "author": {"role": role}, "content": content, **more}
    return {"id": id_, "parent": parent, "message": message, "children": []}


def chat(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    mapping = {each["id"]: each for each in nodes}
    return {"title": "Pump", "id": "c1", "create_time": 1.7e9, "mapping": mapping, **more}


FORKED = chat(
    node("root", None, text=None),
    node("u1", "root", text="The pump is dry", create_time=1700000000.0),
    node("a1", "u1", "assistant", "Prime it.", create_time=1700000009.5),
    node("a2", "u1", "assistant", "Replace it.", create_time=1700000008.0),
    node("u2", "a1", text="It works", create_time=None),
    current_node="u2",
)


def test_chatgpt_reads_the_branch_that_is_shown_in_the_order_of_the_tree(read: Reader) -> None:
    found = read(CHATGPT, [FORKED])
    assert found.sure > 0.9
    assert found.skipped == ["message of another branch"]
    assert found.told() == [
        ("message", "user", "The pump is dry"),
        ("message", "assistant", "Prime it."),
        ("message", "user", "It works"),
    ]
    assert [item.key for item in found.items] == ["u1", "a1", "u2"]
    assert found.items[2].metadata == {"id": "u2", "parent": "a1"}
    assert found.items[1].created_at is not None
    assert found.items[2].created_at is None  # the writer gives it the one before
    assert [(h.conversation, h.title, str(h.started)) for h in found.headers] == [
        ("chatgpt:c1", "Pump", "2023-11-14 22:13:20+00:00")
    ]
    assert found.headers[0].metadata == {"format": "chatgpt", "source_id": "c1"}


def test_chatgpt_reads_all_branches_where_they_are_wanted(read: Reader) -> None:
    found = read(CHATGPT, [FORKED], ALL)
    assert [item.key for item in found.items] == ["u1", "a1", "u2", "a2"]
    assert [item.metadata.get("branch") for item in found.items] == [None, None, None, "replaced"]


@pytest.mark.parametrize("parent", [None, "gone", 7])
def test_chatgpt_nodes_that_only_their_parents_know_are_linked(read: Reader, parent: Any) -> None:
    above, below = node("q", None, text="Who?"), node("a", parent, "assistant", "I.")
    above["children"] = ["a", "gone", 7, "q"]
    found = read(CHATGPT, [chat(above, below, current_node="a")])
    assert [item.text for item in found.items] == ["Who?", "I."]
    assert [item.text for item in read(CHATGPT, [chat(above, below)]).items] == ["Who?", "I."]


@pytest.mark.parametrize("current", [None, "gone", 7])
def test_chatgpt_without_a_current_node_takes_the_newest_leaf(read: Reader, current: Any) -> None:
    value = {**FORKED, "current_node": current}
    assert read(CHATGPT, [value]).said("assistant") == ["Replace it."]


def test_chatgpt_lenient_samples_have_neither_types_nor_times_nor_children(read: Reader) -> None:
    value = {
        "id": "c",
        "title": "T",
        "mapping": {
            "root": {"parent": None, "message": None},
            "m1": {
                "parent": "root",
                "message": {"author": {"role": "user"}, "content": {"parts": ["Hello"]}},
            },
            "m2": {
                "parent": "m1",
                "message": {"author": {"role": "assistant"}, "content": {"parts": ["Hi"]}},
            },
        },
    }
    found = read(CHATGPT, [value])
    assert found.said("user") == ["Hello"]
    assert found.said("assistant") == ["Hi"]
    assert [item.key for item in found.items] == ["m1", "m2"]


def content(kind: str, **fields: Any) -> dict[str, Any]:
    return {"content": {"content_type": kind, **fields}}


def test_chatgpt_what_is_injected_is_not_the_users_words(read: Reader) -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    nodes = [
        node("s", None, "system", "", weight=0),
        node("i", "s", **content("user_editable_context", user_profile="I sail", parts=None)),
        node("m", "i", "assistant", **content("model_editable_context", model_set_context="Mira")),
        node("h", "m", "user", "a hidden one", metadata=hidden),
        node("u", "h", "user", "What is the tide?"),
        node("c", "u", "assistant", recipient="web.run", **content("code", text='{"q": "tide"}')),
        node("t", "c", "tool", "High at nine", author={"role": "tool", "name": "web.run"}),
        node("q", "t", "tool", **content("tether_quote", title="Tides", text="Low at three")),
        node("x", "q", "tool", **content("execution_output", text="42")),
        node(
            "r",
            "x",
            "assistant",
            **content("thoughts", thoughts=[{"summary": "S", "content": "C"}]),
        ),
        node("p", "r", "assistant", **content("reasoning_recap", content="Thought for 9 s")),
        node("e", "p", "assistant", ""),
        node("a", "e", "assistant", "At nine.", recipient="all", metadata={"model_slug": "gpt-x"}),
    ]
    found = read(CHATGPT, chat(*nodes, current_node="a"))
    assert found.told() == [
        ("event", "system", "I sail"),
        ("event", "system", "Mira"),
        ("event", "system", "a hidden one"),
        ("message", "user", "What is the tide?"),
        ("tool_call", "assistant", "web.run\nq: tide"),
        ("tool_result", "tool", "High at nine"),
        ("tool_result", "tool", "Tides\nLow at three"),
        ("tool_result", "tool", "42"),
        ("reasoning", "assistant", "S\nC"),
        ("message", "assistant", "At nine."),
    ]
    assert [item.text for item in found.items if item.origin == "user"] == ["What is the tide?"]
    assert found.items[5].data == {"name": "web.run"}
    assert found.items[-1].metadata["model"] == "gpt-x"
    assert found.skipped == ["empty message", "reasoning recap", "empty message"]
    quiet = read(CHATGPT, chat(*nodes, current_node="a"), ImportOptions(include_thinking=False))
    assert "reasoning" not in [item.type for item in quiet.items]


def test_chatgpt_pictures_and_speech(read: Reader) -> None:
    parts = [
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f-1"},
        {"content_type": "audio_transcription", "text": "spoken words"},
        {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://f-2"},
        "written words",
        None,
        7,
    ]
    listed = {"attachments": [{"id": "f-3", "name": "tide.pdf", "mime_type": "application/pdf"}]}
    found = read(
        CHATGPT,
        chat(
            node("u", None, metadata=listed, **content("multimodal_text", parts=parts)),
            node("v", "u", **content("multimodal_text", parts=parts[:1])),
        ),
    )
    assert found.said("user") == ["spoken words\nwritten words", ""]
    assert [file["name"] for file in found.items[0].data["attachments"]] == [
        "file-service://f-1",
        "sediment://f-2",
        "tide.pdf",
    ]


def test_chatgpt_marks_of_links_are_no_words(read: Reader) -> None:
    text = (
        "High at nine \ue200cite\ue202turn0search1\ue202turn0search2\ue201 in "
        '\ue200entity\ue202["city","Brest","a port"]\ue201, \ue200entity\ue202{]\ue201said \ue200x.'
    )
    found = read(CHATGPT, chat(node("a", None, "assistant", text)))
    assert found.said("assistant") == ["High at nine  in Brest, said \ue200x."]


def test_chatgpt_zip_and_split_files_are_read_in_place(tmp_path: Path) -> None:
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("../../etc/conversations-001.json", json.dumps([{**FORKED, "id": "c2"}]))
        packed.writestr("conversations-000.json", json.dumps([FORKED]))
        packed.writestr("user.json", json.dumps({"id": "user-1", "email": "m@example.org"}))
        packed.writestr("message_feedback.json", "[]")
        packed.writestr("file-1.png", b"\x89PNG")
    before = sorted(tmp_path.rglob("*"))
    found = Read(CHATGPT, archive, ImportOptions())
    assert found.sure > 0.9
    assert {header.conversation for header in found.headers} == {"chatgpt:c1", "chatgpt:c2"}
    assert found.problems == []
    assert CLAUDE.detect(Source(archive)) == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_archives_that_are_bombs_or_damaged_are_told(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        with packed.open("big.json", "w", force_zip64=True) as member:
            for _ in range(100):
                member.write(b" " * (1 << 20))
        packed.writestr("conversations.json", json.dumps([FORKED]))
    found = Read(CHATGPT, bomb, ImportOptions())
    assert found.sure > 0.9
    assert len(found.items) == 3
    assert ["grow" in problem.reason for problem in found.problems] == [True]

    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as packed:
        packed.writestr("conversations.json", json.dumps([FORKED]))
    raw = whole.read_bytes()
    whole.write_bytes(raw.replace(b"The pump", b"The bump"))  # its checksum is wrong now
    source = Source(whole)
    assert CHATGPT.detect(source) == 0.0
    assert [type(event) for event in CHATGPT.read(source, ImportOptions())] == [Problem]
    whole.write_bytes(raw[:-40])
    assert [type(event) for event in CHATGPT.read(Source(whole), ImportOptions())] == [Problem]


def test_an_encrypted_member_is_told(tmp_path: Path) -> None:
    path = tmp_path / "locked.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("conversations.json", json.dumps([FORKED]))
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    found = Read(CHATGPT, path, ImportOptions())
    assert [problem.reason for problem in found.problems] == [
        "a member of the archive is encrypted"
    ]


HOSTILE: list[Any] = [
    None,
    7,
    "text",
    [],
    {"mapping": None},
    {"mapping": {"a": 1, "b": {"parent": "b", "message": {"content": None}}}},
    {"mapping": {"a": {"parent": "b", "message": {"author": 3, "content": 4, "metadata": [5]}},
                 "b": {"parent": "a", "message": {"author": {"role": {}}, "content": [1]}}}},
    {"mapping": {"": {"parent": ["x"], "message": {"id": "", "content": {"parts": "no list"}}}}},
    {"mapping": {"a": {"parent": None, "message": {
        "author": {"role": "assistant"}, "recipient": 9, "create_time": "yesterday",
        "content": {"content_type": ["x"], "parts": [{"text": 1}], "thoughts": [1]}}}}},
    {"mapping": {"a": {"parent": None, "message": {
        "author": {"role": "us\ner"}, "content": {"parts": ["x\x00y"], "content_type": "thoughts",
                                                 "thoughts": 3}}}}},
    {"id": "c\n1", "title": 7, "create_time": [], "mapping": {}},
]  # fmt: skip


@pytest.mark.parametrize("options", [ImportOptions(), ALL])
def test_chatgpt_survives_what_is_no_conversation(read: Reader, options: ImportOptions) -> None:
    found = read(CHATGPT, [FORKED, *HOSTILE, {**FORKED, "id": "c9"}], options)
    assert found.headers[0].conversation == "chatgpt:c1"
    assert found.headers[-1].conversation == "chatgpt:c9"
    assert len(found.problems) == 5  # no objects, and one without a mapping
    for one in HOSTILE:
        read(CHATGPT, one, options)


def test_a_cut_export_gives_what_is_whole(read: Reader) -> None:
    raw = json.dumps([FORKED, {**FORKED, "id": "c2"}, {**FORKED, "id": "c3"}]).encode()
    found = read(CHATGPT, raw[:-60])
    assert [header.conversation for header in found.headers] == ["chatgpt:c1", "chatgpt:c2"]
    assert "cut off" in found.problems[0].reason


def test_conversations_as_lines_or_wrapped(read: Reader) -> None:
    lines = "\n".join(json.dumps({**FORKED, "id": name}) for name in ("c1", "c2")).encode()
    found = read(CHATGPT, lines + b'\n{"id": "cut\n')
    assert [header.conversation for header in found.headers] == ["chatgpt:c1", "chatgpt:c2"]
    assert [problem.line for problem in found.problems] == [3]
    wrapped = read(CHATGPT, {"version": 1, "conversations": [FORKED]})
    assert wrapped.sure > 0.9
    assert len(wrapped.items) == 3


def blocks(*found: Any, sender: str = "assistant", **more: Any) -> dict[str, Any]:
    return {"uuid": f"{sender}-{len(found)}", "sender": sender, "content": list(found), **more}


def test_claude_blocks_become_items_and_one_message_stays_one(read: Reader) -> None:
    value = {
        "uuid": "9D3F0c6e-0000-4000-8000-000000000001",
        "name": "Tides",
        "summary": "They spoke of tides.",
        "created_at": "2026-03-01T09:00:00Z",
        "chat_messages": [
            {
                "uuid": "h1",
                "sender": "human",
                "text": "When is the tide?",
                "created_at": "2026-03-01T09:00:01Z",
                "attachments": [{"file_name": "t.txt", "extracted_content": "nine sharp"}],
                "files": [{"file_name": "t.txt"}, {"file_name": "map.png"}],
            },
            blocks(
                {"type": "thinking", "thinking": "Look it up"},
                {"type": "text", "text": "One moment."},
                {"type": "tool_use", "id": "t1", "name": "web", "input": {"q": "tide"}},
                {"type": "tool_result", "tool_use_id": "t1", "name": "web", "is_error": True,
                 "content": [{"type": "text", "text": "no network"}]},
                {"type": "text", "text": "I cannot tell."},
                {"type": "token_budget"},
                text="Look it up One moment. I cannot tell.",
            ),
            {"uuid": "h2", "sender": "human", "text": "", "content": []},
        ],
    }  # fmt: skip
    found = read(CLAUDE, [value])
    assert found.sure > 0.9
    assert found.told() == [
        ("summary", "assistant", "They spoke of tides."),
        ("message", "user", "When is the tide?"),
        ("attachment", "user", "nine sharp"),
        ("reasoning", "assistant", "Look it up"),
        ("message", "assistant", "One moment.\n\nI cannot tell."),
        ("tool_call", "assistant", "web\nq: tide"),
        ("tool_result", "tool", "no network"),
    ]
    assert found.headers[0].conversation == "9d3f0c6e-0000-4000-8000-000000000001"
    assert found.items[1].data["attachments"] == [
        {"kind": "file", "name": "t.txt"},
        {"kind": "file", "name": "map.png"},
    ]
    assert found.items[2].origin == "import"
    assert found.items[6].status == "failed"
    assert {item.response_id for item in found.items[3:]} == {"assistant-6"}
    assert len({item.key for item in found.items}) == 7
    assert found.skipped == ["block token_budget", "empty message"]


def test_claude_takes_the_branch_that_is_shown(read: Reader) -> None:
    def message(name: str, parent: str, sender: str) -> dict[str, Any]:
        return {"uuid": name, "sender": sender, "text": name, "parent_message_uuid": parent}

    root = "00000000-0000-4000-8000-000000000000"
    messages = [
        message("q", root, "human"),
        message("old", "q", "assistant"),
        message("new", "q", "assistant"),
        message("after", "new", "human"),
        message("aside", "old", "human"),
    ]
    value = {"uuid": "c", "name": "n", "chat_messages": messages}
    shown = {**value, "current_leaf_message_uuid": "after"}
    assert [item.text for item in read(CLAUDE, shown).items] == ["q", "new", "after"]
    assert read(CLAUDE, shown).skipped == ["message of another branch"] * 2
    assert [item.text for item in read(CLAUDE, value).items] == ["q", "old", "aside"]
    everything = read(CLAUDE, shown, ALL)
    assert [item.text for item in everything.items] == ["q", "new", "after", "old", "aside"]
    assert [item.metadata.get("branch") for item in everything.items[-2:]] == ["replaced"] * 2


@pytest.mark.parametrize(
    "messages",
    [
        None,
        [None, 7, "x"],
        [{}],
        [{"sender": {}, "content": 5, "attachments": 7, "files": [1, {"file_name": []}]}],
        [{"uuid": "a", "parent_message_uuid": "a", "sender": "human", "text": ["x"]}],
        [{"uuid": "a", "parent_message_uuid": "b", "content": [None, {"type": 3}]},
         {"uuid": "b", "parent_message_uuid": "a", "content": [{"type": "tool_use", "input": 4}]}],
        [{"content": [{"type": "tool_result", "content": {"deep": [1]}}, {"type": "thinking"}]}],
    ],
)  # fmt: skip
def test_claude_survives_what_is_no_conversation(read: Reader, messages: Any) -> None:
    good = {"uuid": "g", "name": "n", "chat_messages": [{"sender": "human", "text": "hello"}]}
    bad = {"uuid": "b", "name": 3, "created_at": "never", "chat_messages": messages}
    found = read(CLAUDE, [good, bad, good])
    assert found.said("user").count("hello") == 2
    assert found.items[0].key == found.items[-1].key


def test_the_formats_are_told_apart_by_content_alone(read: Reader) -> None:
    claude = [{"uuid": "u", "name": "n", "chat_messages": []}]
    others: list[Any] = [[], {}, [{"role": "user", "content": '"mapping": "chat_messages":'}], 3]
    for name in ("conversations.json", "x.zip"):
        assert read(CHATGPT, [FORKED], name=name).sure > 0.9
        assert read(CLAUDE, [FORKED], name=name).sure == 0
        assert read(CLAUDE, claude, name=name).sure > 0.9
        assert read(CHATGPT, claude, name=name).sure == 0
        for other in others:
            assert read(CHATGPT, other, name=name).sure == 0
            assert read(CLAUDE, other, name=name).sure == 0
