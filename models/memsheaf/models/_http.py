"""What the three protocols share below their JSON: settings, statuses, limits, lines."""

from __future__ import annotations

import importlib
import json
import re
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .errors import (
    BadReply,
    BadRequest,
    MissingExtra,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)

if TYPE_CHECKING:
    import httpx

RETRIED = frozenset({408, 409, 429})
_ERROR_BODY = 65_536
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_NEXT_STEP = {
    400: "check the model name, the tools and the length of the messages",
    401: "check the API key",
    403: "check the API key and its permissions",
    404: "check base_url and the model name",
    413: "send fewer or shorter messages",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """How a client talks to its server. Nothing is read from the environment.

    Attributes:
        timeout: Seconds for a whole call whose options name none.
        connect_timeout: Seconds to reach the server, for each attempt.
        attempts: Most attempts of one call; 1 means no retry.
        wait_initial: Shortest wait before the first retry, in seconds; it doubles.
        wait_max: Longest wait between attempts, in seconds; a longer Retry-After is not waited for.
        max_bytes: Longest reply body, in bytes.
        proxy: URL of a proxy, or None.
        verify: False to skip the certificate check, or the path of a CA bundle.
    """

    timeout: float = 300.0
    connect_timeout: float = 10.0
    attempts: int = 3
    wait_initial: float = 0.5
    wait_max: float = 30.0
    max_bytes: int = 8 * 1024 * 1024
    proxy: str | None = None
    verify: bool | str = True


def library(name: str) -> ModuleType:
    """Import httpx or stamina at first use.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f"chat models over HTTP need {name}; run: pip install 'memsheaf[models]'"
        ) from error


def checked_url(base_url: str) -> str:
    """The base URL without a trailing slash; refuses what could leak or mislead."""
    try:
        parts = urlsplit(base_url)
        host = parts.hostname
    except ValueError as error:
        raise BadRequest("base_url is not a URL") from error
    if parts.scheme not in ("http", "https") or not host:
        raise BadRequest("base_url must start with http:// or https:// and name a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadRequest("base_url must not hold a user, a query or a fragment; pass api_key=")
    return base_url.rstrip("/")


def checked_key(api_key: str | None) -> str:
    """The key, "" for none; one that no header can carry is refused without showing it."""
    if api_key and not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        raise BadRequest("api_key holds a space, a line break or a character outside ASCII")
    return api_key or ""


def make_client(settings: HttpSettings) -> httpx.AsyncClient:
    """A client that ignores the environment and follows no redirect (it would carry the key)."""
    lib = library("httpx")
    try:
        verify = (
            ssl.create_default_context(cafile=settings.verify)
            if isinstance(settings.verify, str)
            else settings.verify
        )
        client: httpx.AsyncClient = lib.AsyncClient(
            timeout=lib.Timeout(None, connect=settings.connect_timeout),
            verify=verify,
            proxy=settings.proxy,
            trust_env=False,
            follow_redirects=False,
            headers={"Accept-Encoding": "identity"},
        )
    except (OSError, ValueError, lib.InvalidURL) as error:
        raise BadRequest("HttpSettings: proxy is no URL or verify is no CA bundle") from error
    return client


def encode(body: dict[str, Any]) -> bytes:
    """The body as JSON bytes; a lone surrogate, which UTF-8 cannot carry, becomes "?"."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequest("messages or tools hold something that is not JSON") from error
    return text.encode("utf-8", "replace")


def decode(data: bytes, label: str) -> dict[str, Any]:
    """A JSON object from the server."""
    try:
        value = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadReply("the reply is not UTF-8; check base_url", model=label) from error
    except (ValueError, RecursionError) as error:
        raise BadReply("the reply is not JSON; check base_url", model=label) from error
    if not isinstance(value, dict):
        raise BadReply("the reply is not a JSON object; check base_url", model=label)
    return value


async def bounded(response: httpx.Response, limit: int, label: str) -> AsyncIterator[bytes]:
    """The body's chunks, refusing the one that passes the limit."""
    seen = 0
    async for chunk in response.aiter_bytes():
        seen += len(chunk)
        if seen > limit:
            raise BadReply(
                f"the reply is longer than {limit} bytes; lower max_tokens or raise max_bytes",
                model=label,
            )
        yield chunk


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines ended by LF or CRLF only: U+2028 and the like are plain text inside JSON."""
    rest: list[bytes] = []
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest.append(first)
        for other in others:
            yield b"".join(rest).removesuffix(b"\r")
            rest = [other]
    if last := b"".join(rest):
        yield last


async def sse_data(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each server-sent event (WHATWG HTML, section 9.2.6)."""
    data: list[bytes] = []
    async for line in source:
        if not line and data:
            yield b"\n".join(data)
            data = []
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
    if data:
        yield b"\n".join(data)


async def status_error(response: httpx.Response, label: str, key: str) -> ModelError:
    """Our error for a status other than 200; only a short error code of the body is shown."""
    data = b""
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > _ERROR_BODY:
            break
    status = response.status_code
    code = _error_code(data, key)
    said = f"HTTP {status}" + (f" ({code})" if code else "")
    if status == 429:
        wait = retry_after(response.headers.get("retry-after"))
        return ModelBusy(
            f"{said}, too many requests; wait or raise the server's limit",
            model=label,
            retry_after=wait,
        )
    if status >= 500 or status in RETRIED:
        return ModelUnavailable(f"{said}; try again later", model=label)
    step = _NEXT_STEP.get(status, "check base_url and the request")
    return ModelRefused(f"{said}; {step}", model=label, status=status)


def _error_code(data: bytes, key: str) -> str:
    try:
        error = json.loads(data)["error"]
        code = error.get("code") or error.get("type")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
    # Free text may repeat the prompt or the key; an identifier cannot hold a prompt.
    if isinstance(code, str) and _IDENTIFIER.fullmatch(code) and not (key and key in code):
        return code
    return ""


def retry_after(value: str | None) -> float | None:
    """Seconds from a Retry-After header, a number or a date (RFC 9110, section 10.2.3)."""
    if not value:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value.strip()):
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
