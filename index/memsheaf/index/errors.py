"""Errors of the index engines; the layer above wraps and chains them."""


class IndexingError(Exception):
    """Base of all errors of `memsheaf.index`."""


class SnapshotError(IndexingError):
    """A saved index is torn, truncated, foreign or of another analyzer: rebuild it."""
