"""Processes of a benchmark, which have to find its package wherever it was started from."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = str(Path(__file__).parents[1])


@contextmanager
def findable() -> Iterator[None]:
    """Let processes that are started inside find this package: they get our search path."""
    sys.path.append(ROOT)
    try:
        yield
    finally:
        sys.path.remove(ROOT)
