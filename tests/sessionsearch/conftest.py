from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memsheaf.sessionsearch import ConversationLog


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "log.db"


@pytest.fixture
def log(log_path: Path) -> Iterator[ConversationLog]:
    with ConversationLog(log_path) as opened:
        yield opened
