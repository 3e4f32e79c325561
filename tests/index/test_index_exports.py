"""Names of the index; those of the vectors are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import memsheaf.index
from memsheaf.index import vectors


def test_every_name_is_found() -> None:
    for name in memsheaf.index.__all__:
        assert getattr(memsheaf.index, name) is not None
        assert name in dir(memsheaf.index)
    assert memsheaf.index.VectorIndex is vectors.VectorIndex
    assert memsheaf.index.VectorHit is vectors.VectorHit


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = memsheaf.index.no_such_name


def test_text_search_does_not_wait_for_the_vectors() -> None:
    code = (
        "import sys; from memsheaf.index import BM25Index; BM25Index(); "
        "print('memsheaf.index.vectors' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
