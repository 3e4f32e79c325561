"""Importers: transcripts that people have on disk become conversations of a log."""

from .base import Entry, Event, Header, Importer, ImportOptions, Skipped
from .plugins import Found, Importers, discover, load_importers
from .runner import follow, import_paths
from .source import Position, Problem, Record, Source
from .summary import FileReport, ImportSummary, Progress
from .walk import Unreadable

__all__ = [
    "Entry",
    "Event",
    "FileReport",
    "Found",
    "Header",
    "ImportOptions",
    "ImportSummary",
    "Importer",
    "Importers",
    "Position",
    "Problem",
    "Progress",
    "Record",
    "Skipped",
    "Source",
    "Unreadable",
    "discover",
    "follow",
    "import_paths",
    "load_importers",
]
