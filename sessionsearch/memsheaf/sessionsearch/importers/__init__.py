"""Importers: transcripts that people have on disk become conversations of a log."""

from .base import Entry, Event, Header, Importer, ImportOptions, Problem, Skipped
from .source import Position, Record, Source

__all__ = [
    "Entry",
    "Event",
    "Header",
    "ImportOptions",
    "Importer",
    "Position",
    "Problem",
    "Record",
    "Skipped",
    "Source",
]
