"""Keeps each memory as one JSON file."""

import hashlib
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from memsheaf.index import get_analyzer, terms
from memsheaf.stack import (
    Filter,
    Hit,
    IdUnavailable,
    MemoryRecord,
    ProviderContext,
    ProviderFactory,
    Scope,
    hookimpl,
)


class Options(BaseModel):
    """What its table in the configuration may hold."""

    model_config = ConfigDict(extra="forbid")

    path: Path | None = None


class TextFolder:
    """A folder of JSON files, searched by common words."""

    scope_fields = ("user_id", "agent_id", "session_id", "namespace")
    filters_natively = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @hookimpl
    def store(self, record: MemoryRecord) -> None:
        """Write a file, whole or not at all."""
        path = self._path(record.id)
        if path.exists():
            held = MemoryRecord.from_json(path.read_bytes())
            if held.scope != record.scope:
                raise IdUnavailable("the id cannot be used in this scope")
            if held.updated_at > record.updated_at:
                return
        temporary = path.with_suffix(".new")
        temporary.write_text(record.to_json(), encoding="utf-8")
        os.replace(temporary, path)

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int, filters: Filter | None) -> list[Hit]:
        """Hits by the share of the query's words that they hold."""
        records = [r for r in self._live(scope) if filters is None or filters.matches(r)]
        if not text.strip():
            newest = sorted(records, key=lambda r: r.updated_at, reverse=True)
            return [Hit(record) for record in newest[:limit]]
        wanted = _words(text)
        hits = []
        for record in records:
            found = wanted & _words(" ".join((record.content, *record.tags)))
            if found:
                share = len(found) / len(wanted)
                hits.append(Hit(record, score=share, relevance=share))
        return sorted(hits, key=lambda hit: hit.score, reverse=True)[:limit]

    @hookimpl
    def get(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        """The record, where the scope may see it."""
        record = self._held(record_id, scope)
        return None if record is None or record.is_expired() else record

    @hookimpl
    def forget(self, record_id: str, scope: Scope) -> bool:
        """Delete the file."""
        if self._held(record_id, scope) is None:
            return False
        self._path(record_id).unlink(missing_ok=True)
        return True

    def _held(self, record_id: str, scope: Scope) -> MemoryRecord | None:
        path = self._path(record_id)
        if not path.exists():
            return None
        record = MemoryRecord.from_json(path.read_bytes())
        return record if scope.matches(record.scope) else None

    def _live(self, scope: Scope) -> list[MemoryRecord]:
        read = (MemoryRecord.from_json(p.read_bytes()) for p in self._folder.glob("*.json"))
        return [r for r in read if scope.matches(r.scope) and not r.is_expired()]

    def _path(self, record_id: str) -> Path:
        return self._folder / f"{hashlib.sha256(record_id.encode()).hexdigest()}.json"


def _words(text: str) -> set[str]:
    return set(terms(get_analyzer("english"), text))


def build(options: Options, context: ProviderContext) -> TextFolder:
    """The provider of a table in the configuration."""
    folder = options.path or context.folder
    if folder is None:
        raise ValueError("name a folder with the option path")
    return TextFolder(folder)


FACTORY = ProviderFactory(build, Options)
