"""The conformance kit: what every provider must do, as a pytest class to inherit from.

Needs pytest, the extra ``test``. Derive a class whose name starts with ``Test`` and give it one
fixture, ``provider``:

    class TestMyStore(ProviderConformance):
        @pytest.fixture
        def provider(self, tmp_path):
            store = MyStore(tmp_path)
            yield store
            store.close()

A hook, a scope field or a trait that the provider does not have skips its tests by name.
"""

from __future__ import annotations

import sys

import pytest

for _part in ("base", "driver", "search", "rules", "hooks"):
    _module = f"memsheaf.stack.conformance_{_part}"
    if _module not in sys.modules:  # too late otherwise, and pytest would warn
        pytest.register_assert_rewrite(_module)  # so that a failed assert shows its values

from .conformance_base import HOSTILE_TEXTS  # noqa: E402
from .conformance_hooks import HooksConformance  # noqa: E402
from .conformance_rules import RulesConformance  # noqa: E402
from .conformance_search import SearchConformance  # noqa: E402

__all__ = ["HOSTILE_TEXTS", "ProviderConformance"]


class ProviderConformance(SearchConformance, RulesConformance, HooksConformance):
    """Inherit from it and give the fixture ``provider``: an empty provider, fresh for each test.

    A durable provider also gives ``reopen``: a function that closes the given provider and opens
    its data again.

    Attributes:
        keeps_records: Whether records come back whole and under our ids; an adapter to a system
            that cannot do so sets it to False.
        ranks_words: Whether it matches words; a provider that matches by meaning sets it to False.
    """
