"""The kit passes on the in-memory store, whole and wrapped."""

import pytest

from memsheaf.stack.conformance import ProviderConformance
from memsheaf.stack.doubles import InMemoryStore, RecordingProvider


class TestInMemoryStore(ProviderConformance):
    @pytest.fixture
    def provider(self) -> object:
        return InMemoryStore()


class TestRecordingProvider(ProviderConformance):
    @pytest.fixture
    def provider(self) -> object:
        return RecordingProvider()
