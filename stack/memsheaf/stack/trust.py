"""Trust: which project files the user has looked at and accepted, by path and hash."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .config_sources import Document
from .errors import ConfigError

__all__ = ["TrustStore"]

_VERSION = 1


class TrustStore:
    """Hashes of trusted files, in one file of the user's folder.

    Args:
        folder: The user's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "trust.json"

    def trusts(self, document: Document) -> bool:
        """Whether these very bytes at this place were accepted."""
        return self._read().get(str(document.path)) == document.sha256

    def trust(self, document: Document) -> None:
        """Accept a file as it is now."""
        with self._locked():
            self._write({**self._read(), str(document.path): document.sha256})

    def revoke(self, path: Path) -> bool:
        """Withdraw it; returns whether it was trusted."""
        with self._locked():
            files = self._read()
            if files.pop(str(path), None) is None:
                return False
            self._write(files)
            return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Two commands at once must not lose each other's entry."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _read(self) -> dict[str, str]:
        try:
            held = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self.path}: cannot be read; repair or remove it") from error
        files = held.get("files") if isinstance(held, dict) else None
        if not isinstance(files, dict) or held.get("version") != _VERSION:
            raise ConfigError(f"{self.path}: not a trust file of this version; remove it")
        return {str(path): str(sha256) for path, sha256 in files.items()}

    def _write(self, files: Mapping[str, str]) -> None:
        try:
            # mkstemp makes the file 0600; replacing keeps a reader from seeing half of it.
            descriptor, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".trust-")
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({"version": _VERSION, "files": dict(files)}, file, indent=1)
            os.replace(temporary, self.path)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be written: {error.strerror}") from error
