"""The importers that are installed, and which of them reads a source."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from memsheaf.stack import RegistrationError, Registry

from .base import Importer
from .source import Source
from .walk import FoundFile, Unreadable, walk

__all__ = [
    "Detected",
    "Found",
    "Importers",
    "Places",
    "discover",
    "exclusive_places",
    "load_importers",
]

_SURE_ENOUGH = 0.5
_CERTAIN = 0.95


@runtime_checkable
class Places(Protocol):
    """An importer that knows where its program keeps transcripts.

    With an attribute `exclusive` that is true, files there are read by it alone.
    """

    def places(self) -> Iterable[Path]:
        """Folders or files that may be there."""
        ...


@dataclass(frozen=True, slots=True)
class Detected:
    """Which importer reads a source, and which ones failed to say."""

    importer: Importer | None
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Importers:
    """The importers that work, by name, and the reasons of those that do not."""

    working: Mapping[str, Importer]
    broken: tuple[str, ...] = ()

    def named(self, name: str) -> Importer:
        """One by its name.

        Raises:
            RegistrationError: There is none; tells those that exist.
        """
        if name not in self.working:
            known = ", ".join(sorted(self.working))
            why = next((f" ({reason})" for reason in self.broken if reason.startswith(name)), "")
            raise RegistrationError(f"no importer {name!r}{why}; known: {known}")
        return self.working[name]

    def detect(self, source: Source, likely: Importer | None = None) -> Detected:
        """The importer that is surest; one that raises is passed over.

        Args:
            source: What is to be read.
            likely: Asked first; the others are not asked where it is certain.
        """
        best: Importer | None = None
        highest, failed = 0.0, []
        names = sorted(self.working, key=lambda name: self.working[name] is not likely)
        for name in names:
            importer = self.working[name]
            try:
                sure = importer.detect(source)
            except OSError:
                raise
            except Exception as error:
                failed.append(f"importer {name} failed to look at it: {type(error).__name__}")
                continue
            if sure > highest:
                best, highest = importer, sure
            if importer is likely and sure >= _CERTAIN:
                break
        return Detected(best if highest >= _SURE_ENOUGH else None, tuple(failed))


@dataclass(frozen=True, slots=True)
class Found:
    """Transcripts of one program on this machine.

    Attributes:
        format: The name of the importer.
        path: The folder or file.
        files: How many files lie there that can be reached.
        bytes: Their size.
        unreadable: What is there and cannot be reached, with the reason.
    """

    format: str
    path: Path
    files: int
    bytes: int
    unreadable: tuple[Unreadable, ...] = ()


def load_importers() -> Importers:
    """Every importer of the group `memsheaf.importers`; a broken one costs only itself."""
    registry = Registry("memsheaf.importers")
    working: dict[str, Importer] = {}
    broken: list[str] = []
    for plugin in registry.describe():
        if plugin.status != "loaded":
            broken.append(f"{plugin.name} of {plugin.distribution}: {plugin.reason}")
            continue
        try:
            loaded = registry.load(plugin.name)
            made = loaded() if isinstance(loaded, type) else loaded
        except Exception as error:
            broken.append(f"{plugin.name} of {plugin.distribution}: {type(error).__name__}")
            continue
        if isinstance(made, Importer):
            working[plugin.name] = made
        else:
            broken.append(f"{plugin.name} of {plugin.distribution}: it is no importer")
    return Importers(working, tuple(broken))


def exclusive_places(importers: Importers) -> list[tuple[str, Importer]]:
    """The folders in which nothing but an importer's own format is a transcript, and whose.

    Programs keep more there than sessions: what a tool answered, notes that a model wrote. Such a
    file may look like a chat of another format, and its words are not the user's.

    Raises:
        RegistrationError: An importer's place cannot be told.
    """
    return [
        (os.path.join(os.path.realpath(place), ""), importer)
        for importer in importers.working.values()
        if getattr(importer, "exclusive", False)
        for place in _places_of(importer)
    ]


def _places_of(importer: Importer) -> list[Path]:
    if not isinstance(importer, Places):
        return []
    try:
        return list(cast("Places", importer).places())
    except Exception as error:
        raise RegistrationError(f"importer {importer.name} cannot tell its places") from error


def discover(importers: Importers | None = None) -> list[Found]:
    """The places on this machine where known programs keep transcripts, as far as they exist.

    Raises:
        RegistrationError: An importer's place cannot be told.
    """
    found = []
    for name, importer in (importers or load_importers()).working.items():
        for place in _places_of(importer):
            under = [] if _absent(place) else list(walk([place]))
            sizes = [each.size for each in under if isinstance(each, FoundFile)]
            closed = tuple(each for each in under if isinstance(each, Unreadable))
            if under:
                found.append(Found(name, place, len(sizes), sum(sizes), closed))
    return found


def _absent(place: Path) -> bool:
    """Whether nothing has that name; what hides behind rights or a loop of links is there."""
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
