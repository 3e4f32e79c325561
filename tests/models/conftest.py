"""A real HTTP server on loopback that plays what a test wrote down."""

from __future__ import annotations

import gc
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from memsheaf.models import HttpSettings


@dataclass
class Play:
    """One answer of the server.

    `chunks` are sent chunked, one flush each. `hold` names when to stall until the test's end or
    the client's leaving: "headers", "body". `drop` closes the socket without the final chunk.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[bytes] | None = None
    hold: str = ""
    drop: bool = False


class Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self._plays: list[Play] = []
        self.requests: list[dict[str, Any]] = []
        self.seen_headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.over = threading.Event()
        self.arrived = threading.Event()
        self.left = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def sends(self, payload: Any, status: int = 200, **headers: str) -> None:
        """The next answer is this JSON."""
        self.plays(body=json.dumps(payload).encode(), status=status, headers=headers)

    def plays(self, **play: Any) -> None:
        """The next answer; the fields of `Play`."""
        self._plays.append(Play(**play))

    def next_play(self) -> Play:
        with self._lock:
            return self._plays.pop(0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves early is part of the tests."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        server = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.requests.append(json.loads(body))
        server.seen_headers.append({k.lower(): v for k, v in self.headers.items()})
        server.paths.append(self.path)
        play = server.next_play()
        if play.hold == "headers":
            self._stall()
            return
        self.send_response(play.status)
        for name, value in play.headers.items():
            self.send_header(name.replace("_", "-"), value)
        if play.chunks is None:
            self.send_header("Content-Length", str(len(play.body)))
            self.end_headers()
            self.wfile.write(play.body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in play.chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        if play.hold == "body":
            self._stall()
        elif play.drop:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _stall(self) -> None:
        """Wait until the client closes its end; then say that it left."""
        self.server.arrived.set()
        self.close_connection = True
        self.connection.settimeout(0.05)
        while not self.server.over.is_set():
            try:
                if self.connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:  # it left with bytes of ours unread
                break
        else:
            return
        self.server.left.set()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.over.set()
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def settings() -> HttpSettings:
    return HttpSettings(timeout=20, wait_initial=0.001, wait_max=0.01)


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves a client thread or an open socket (an open one warns, which fails)."""
    yield
    gc.collect()
    assert [t.name for t in threading.enumerate() if t.name == "memsheaf-models"] == []
