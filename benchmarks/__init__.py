"""Memsheaf measured beside its peers; run from the repository's root."""
