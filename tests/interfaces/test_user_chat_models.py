"""`--deriver llm` over the configured models, against real local servers."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memsheaf.interfaces.model_place import opened_models
from memsheaf.stack import ConfigError
from memsheaf.stack.config import load_config

if TYPE_CHECKING:
    from tests.interfaces.conftest import Run

SAID = "We finally settled in Lisbon."


class ChatServer(ThreadingHTTPServer):
    """Proposes one line for the first item; remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str | None, dict[str, Any]]] = []
        self.status = 200
        self.stall = 0.0
        self.text = json.dumps(
            {
                "operations": [
                    {
                        "op": "add",
                        "kind": "fact",
                        "text": "Settled in Lisbon",
                        "confidence": 0.9,
                        "items": ["i1"],
                        "quote": "settled in Lisbon",
                    }
                ]
            }
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers["Authorization"] or self.headers["x-api-key"]
        self.server.asked.append((self.path, key, body))
        text = self.server.text
        if self.server.stall:
            time.sleep(self.server.stall)
            return
        message = {"role": "assistant", "content": text}
        replies: dict[str, dict[str, Any]] = {
            "/v1/chat/completions": {"choices": [{"message": message, "finish_reason": "stop"}]},
            "/api/chat": {"message": message, "done": True, "done_reason": "stop"},
            "/v1/messages": {
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
            },
        }
        data = json.dumps(replies[self.path]).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    server = ChatServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def home(home: Path) -> Path:
    home.mkdir(mode=0o700)
    return home


Answer = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def run(home: Path, command: Run) -> Answer:
    def ran(*words: str) -> tuple[int, Any, str]:
        done = command(*words, "--json")
        return done.code, json.loads(done.out or "null"), done.err

    return ran


def table(name: str, kind: str, url: str, key: str | None = None) -> str:
    held = f'api_key = "{key}"\n' if key else ""
    return f'[models.{name}]\ntype = "{kind}"\nmodel = "small"\nbase_url = "{url}"\n{held}'


@pytest.mark.parametrize(
    ("kind", "base", "path"),
    [
        ("openai", "/v1", "/v1/chat/completions"),
        ("anthropic", "", "/v1/messages"),
        ("ollama", "", "/api/chat"),
    ],
)
def test_learn_with_a_configured_model(
    run: Answer, home: Path, chat: ChatServer, kind: str, base: str, path: str
) -> None:
    text = table("user_model", kind, chat.url + base, "a-long-secret-key")
    (home / "memsheaf.toml").write_text(text, encoding="utf-8")
    code, out, _ = run("user", "learn", SAID, "--deriver", "llm")
    assert code == 0
    assert [line["text"] for line in out["lines"]] == ["Settled in Lisbon"]
    assert out["lines"][0]["sources"]
    asked, key, body = chat.asked[0]
    assert (asked, body["model"]) == (path, "small")
    assert key is not None
    assert key.endswith("a-long-secret-key")
    _, shown, _ = run("config")
    assert "a-long-secret-key" not in json.dumps(shown)
    assert "models.user_model.base_url" in json.dumps(shown)


def test_a_question_is_worded_by_the_model(run: Answer, home: Path, chat: ChatServer) -> None:
    (home / "memsheaf.toml").write_text(table("primary", "ollama", chat.url), encoding="utf-8")
    run("user", "correct", "Lives in Lisbon")
    chat.text = '{"answer": "In Lisbon.", "lines": ["L1"]}'
    code, out, _ = run("user", "ask", "Where does she live?", "--model")
    assert (code, out["answer"]) == (0, "In Lisbon.")
    assert [line["id"] for line in out["lines"]] == ["L1"]
    chat.text = '{"answer": "In Rome.", "lines": []}'
    code, out, _ = run("user", "ask", "Where does she live?", "--model")
    assert (code, out["answer"]) == (1, None)


def test_depth_asks_once_more(run: Answer, home: Path, chat: ChatServer) -> None:
    (home / "memsheaf.toml").write_text(table("primary", "ollama", chat.url), encoding="utf-8")
    run("user", "learn", SAID, "--deriver", "llm", "--depth", "2")
    assert len(chat.asked) >= 2


def test_the_chain_goes_on_where_a_model_is_down(run: Answer, home: Path, chat: ChatServer) -> None:
    down = table("user_model", "ollama", "http://127.0.0.1:9")
    main_model = table("primary", "openai", chat.url + "/v1")
    (home / "memsheaf.toml").write_text(down + main_model, encoding="utf-8")
    code, out, _ = run("user", "learn", SAID, "--deriver", "llm")
    assert (code, len(out["lines"])) == (0, 1)


def test_the_order_is_slot_auxiliary_primary(home: Path) -> None:
    tables = [table(name, "ollama", f"http://{name.replace('_', '')}.test") for name in NAMES]
    (home / "memsheaf.toml").write_text("".join(tables), encoding="utf-8")
    with opened_models(load_config(), "user_model") as chain:
        assert re.findall(r"at (\w+)", chain.name) == ["usermodel", "auxiliary", "primary"]
    with opened_models(load_config(), "another job") as chain:
        assert re.findall(r"at (\w+)", chain.name) == ["auxiliary", "primary"]


NAMES = ("primary", "auxiliary", "user_model")


def test_without_a_model_the_error_names_the_table(run: Answer, home: Path) -> None:
    code, out, error = run("user", "learn", SAID, "--deriver", "llm")
    assert (code, out) == (2, None)
    assert "[models.user_model]" in error
    with pytest.raises(ConfigError), opened_models(load_config(), "user_model"):
        pass


def test_a_failing_model_changes_nothing_and_shows_no_key(
    run: Answer, home: Path, chat: ChatServer
) -> None:
    chat.status = 401
    text = table("primary", "openai", chat.url + "/v1", "a-long-secret-key")
    (home / "memsheaf.toml").write_text(text, encoding="utf-8")
    code, _, error = run("user", "learn", SAID, "--deriver", "llm")
    assert code == 2
    assert "a-long-secret-key" not in error
    _, state, _ = run("user", "status")
    assert state["waiting"] == 1
    assert "401" in state["last_error"]
    chat.status = 200
    code, out, _ = run("user", "refresh", "--deriver", "llm")
    assert (code, out["lines"]) == (0, 1)


def test_the_configured_timeout_counts(run: Answer, home: Path, chat: ChatServer) -> None:
    chat.stall = 2.0
    text = table("primary", "ollama", chat.url) + "timeout = 0.2\n"
    (home / "memsheaf.toml").write_text(text, encoding="utf-8")
    code, _, error = run("user", "learn", SAID, "--deriver", "llm")
    assert code == 2
    assert "ModelTimeout" in error or "0.2" in error


def test_a_projects_model_is_never_asked_before_trust(
    run: Answer, home: Path, chat: ChatServer
) -> None:
    Path("memsheaf.toml").write_text(table("primary", "ollama", chat.url), encoding="utf-8")
    code, _, error = run("user", "learn", SAID, "--deriver", "llm")
    assert code == 2
    assert chat.asked == []
    assert "memsheaf trust" in error
    _, trusted, _ = run("trust")
    assert trusted["reasons"] == ["it names a chat model, which uses the network"]
    code, _, _ = run("user", "learn", SAID, "--deriver", "llm")
    assert code == 0
