"""Importing files: find them, tell their format, read what is new, append it, remember where."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from memsheaf.sessionsearch.log import ConversationLog
from memsheaf.stack import NotFound, Scope

from .archives import flaws
from .base import Event, Importer, ImportOptions
from .plugins import Importers, exclusive_places, load_importers
from .source import Position, Problem, Source
from .state import FileState, ImportState, fingerprint
from .summary import FileReport, ImportSummary, Progress, ProgressCallback
from .walk import FoundFile, Unreadable, walk
from .writer import Writer

__all__ = ["follow", "import_paths"]

_CHECKPOINT = 64 * 1024 * 1024  # bytes of a file between two notes of the place
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def import_paths(
    paths: str | Path | Iterable[str | Path],
    log: ConversationLog,
    scope: Scope,
    *,
    options: ImportOptions | None = None,
    format: str | None = None,
    progress: ProgressCallback | None = None,
    state: str | Path | None = None,
) -> ImportSummary:
    r"""Import transcripts; doing it twice changes nothing, and a grown file adds its tail.

    Args:
        paths: Files and folders; folders are walked.
        log: Where the conversations go.
        scope: Whose they are.
        options: How to read.
        format: The name of an importer; by default the content tells.
        progress: Told where the import is, from time to time.
        state: The folder that remembers what was imported; by default beside the log.

    Returns:
        What became of each file. Bad files and lines are in it; they raise nothing.

    Raises:
        RegistrationError: There is no importer of that name.
        ProviderError: The log or the state cannot be written; what was written stays, and the
            next import goes on from there.

    >>> from tempfile import TemporaryDirectory
    >>> line = '{"type": "user", "uuid": "u1", "sessionId": "s", "message": {"content": "A cello"}}'
    >>> with TemporaryDirectory() as folder, ConversationLog(f"{folder}/log.db") as log:
    ...     _ = Path(folder, "s.jsonl").write_text(line + "\n")
    ...     import_paths(f"{folder}/s.jsonl", log, Scope(user_id="mira")).added
    1
    """
    scope.require_writable()
    importers = load_importers()
    wanted = None if format is None else importers.named(format)
    with ImportState(_state_folder(log, state), scope) as states:
        run = _Run(log, scope, options or ImportOptions(), importers, wanted, states)
        return run.over(list(walk(_listed(paths))), progress)


def follow(
    paths: str | Path | Iterable[str | Path],
    log: ConversationLog,
    scope: Scope,
    *,
    options: ImportOptions | None = None,
    format: str | None = None,
    progress: ProgressCallback | None = None,
    state: str | Path | None = None,
    interval: float = 2.0,
    stop: threading.Event | None = None,
) -> Iterator[ImportSummary]:
    """Import, and go on as files grow and appear: one summary for each look that read something.

    Args:
        paths: Files and folders, which may not exist yet.
        log: Where the conversations go.
        scope: Whose they are.
        options: How to read.
        format: The name of an importer; by default the content tells.
        progress: Told where the import is, from time to time.
        state: The folder that remembers what was imported; by default beside the log.
        interval: Seconds between two looks.
        stop: Ends it when set; without one, close the generator.
    """
    scope.require_writable()
    importers = load_importers()
    wanted = None if format is None else importers.named(format)
    stop = stop or threading.Event()
    looked: dict[Path, str] = {}
    with ImportState(_state_folder(log, state), scope) as states:
        run = _Run(log, scope, options or ImportOptions(), importers, wanted, states)
        while not stop.is_set():
            changed = []
            for file in walk(_listed(paths)):
                stamp = file.stamp if isinstance(file, FoundFile) else file.reason
                if looked.get(file.path) != stamp:
                    looked[file.path] = stamp
                    changed.append(file)
            summary = run.over(changed, progress)
            if any(file.status != "unchanged" for file in summary.files):
                yield summary
            stop.wait(interval)


@dataclass(slots=True)
class _Done:
    """Sums for the progress."""

    total_bytes: int
    total_files: int
    bytes: int = 0
    files: int = 0
    added: int = 0


@dataclass(slots=True)
class _Run:
    log: ConversationLog
    scope: Scope
    options: ImportOptions
    importers: Importers
    wanted: Importer | None
    states: ImportState
    _done: _Done = field(default_factory=lambda: _Done(0, 0))
    _progress: ProgressCallback | None = None
    _likely: Importer | None = None  # what the last file was
    _places: list[tuple[str, Importer]] | None = None

    def over(
        self, files: list[FoundFile | Unreadable], progress: ProgressCallback | None
    ) -> ImportSummary:
        begun = time.monotonic()
        sizes = [file.size for file in files if isinstance(file, FoundFile)]
        self._done, self._progress = _Done(sum(sizes), len(files)), progress
        reports: list[FileReport] = []
        for file in files:
            if isinstance(file, Unreadable):
                reports.append(_failed(str(file.path), file.reason))
            else:
                reports += self._file(file)
                self._done.bytes += file.size
            self._done.files += 1
            self._tell(file.path, 0, 0)
        return ImportSummary(tuple(reports), self.importers.broken, time.monotonic() - begun)

    def _file(self, file: FoundFile) -> list[FileReport]:
        try:
            known = self.states.get(file.path)
            if known and known.stamp == file.stamp and self._still_holds(known):
                return [FileReport(str(file.path), "unchanged", known.reading.partition(" ")[0])]
            source = Source(file.path, size=file.size)
            if source.head.startswith(_UTF16):
                return [_failed(source.name, "it is UTF-16; save it as UTF-8")]
            importer = self._resumed(file, known)
            failed: tuple[str, ...] = ()
            if importer is None:
                detected = self._asked(file.path).detect(source, self._likely)
                importer, failed = detected.importer, detected.failed
                self._likely = importer or self._likely
            if importer is None and (reasons := flaws(source)):
                return [_failed(source.name, *reasons)]
            if importer is None:
                return [_unknown(source.name, failed)]
            writer = Writer(self.log, self.scope, _modified(file.path))
            start = self._start(file, known, importer)
            if known and start:
                source = Source(file.path, size=file.size, start=start)
                writer.witness = known.witness
            for reason in failed:
                writer.problem(Problem(None, reason))
            return [self._source(file, source, importer, writer)]
        except OSError as error:
            return [_failed(str(file.path), error.strerror or type(error).__name__)]

    def _asked(self, path: Path) -> Importers:
        """The importers that may read a file: one alone in the folder of its program."""
        if self._places is None:
            self._places = exclusive_places(self.importers)
        real = os.path.realpath(path)
        owner = next((each for place, each in self._places if real.startswith(place)), None)
        return self.importers if owner is None else Importers({owner.name: owner})

    def _source(
        self, file: FoundFile, source: Source, importer: Importer, writer: Writer
    ) -> FileReport:
        first = safe = saved = source.done
        broken: str | None = None
        with closing(_events(importer, source, self.options)) as events:
            while True:
                try:
                    event = next(events)
                except StopIteration:
                    break
                except OSError as error:
                    broken = error.strerror or type(error).__name__
                    break
                except Exception as error:  # a plugin's fault costs only this file
                    broken = f"importer {importer.name} failed: {type(error).__name__}"
                    break
                writer.place = source.done
                if not writer.take(event):
                    continue
                ahead = source.done
                writer.flush()
                # One batch behind: an importer may hold an event back for a line or two.
                if safe.offset - saved.offset >= _CHECKPOINT:
                    self._keep(file, importer, writer, safe, stamp="")
                    saved = safe
                safe = ahead
                self._tell(file.path, source.done.offset - first.offset, writer.added)
        writer.flush()
        self._done.added += writer.added
        if broken is None:
            place = writer.unfinished(first) or source.done
            self._keep(file, importer, writer, place, stamp=file.stamp)
        else:
            writer.problem(Problem(None, broken))
        return FileReport(
            path=source.name,
            status="imported" if broken is None else "failed",
            format=importer.name,
            conversations=len(writer.written),
            added=writer.added,
            known=writer.known,
            refused=writer.refused,
            skipped=dict(writer.skipped),
            problems=tuple(writer.problems),
            problem_count=writer.problem_count,
            bytes=source.done.offset - first.offset if source.done.offset else source.size,
        )

    def _keep(
        self, file: FoundFile, importer: Importer, writer: Writer, place: Position, *, stamp: str
    ) -> None:
        if writer.forgotten:  # it may be restored: the file is read again each time
            return
        if not importer.incremental:
            place = Position()
        try:
            before = fingerprint(file.path, place.offset) if place.offset else ""
        except OSError:  # it was removed while it was read: there is nothing to go on with
            return
        self.states.set(
            file.path,
            FileState(
                stamp=stamp,
                reading=self._reading(importer),
                position=place,
                fingerprint=before,
                witness=writer.witness,
            ),
        )

    def _resumed(self, file: FoundFile, known: FileState | None) -> Importer | None:
        """The importer that was named, or the one that read the beginning of the file."""
        if self.wanted is not None or known is None:
            return self.wanted
        importer = self.importers.working.get(known.reading.partition(" ")[0])
        return importer if importer and self._start(file, known, importer) else None

    def _start(
        self, file: FoundFile, known: FileState | None, importer: Importer
    ) -> Position | None:
        """Where reading goes on; None to begin anew."""
        if known is None or not importer.incremental or known.reading != self._reading(importer):
            return None
        place = known.position
        if not 0 < place.offset <= file.size or not self._still_holds(known):
            return None
        return place if fingerprint(file.path, place.offset) == known.fingerprint else None

    def _still_holds(self, known: FileState) -> bool:
        """Whether the log is the one that the state speaks of, and the options are the same."""
        if known.reading.partition(" ")[2] != self._options():
            return False
        if self.wanted is not None and known.reading.partition(" ")[0] != self.wanted.name:
            return False
        if known.witness is None:
            return True
        try:
            self.log.conversation(known.witness, self.scope)
        except NotFound:
            return False
        return True

    def _reading(self, importer: Importer) -> str:
        return f"{importer.name} {self._options()}"

    def _options(self) -> str:
        return json.dumps(asdict(self.options), sort_keys=True)

    def _tell(self, path: Path, read: int, added: int) -> None:
        if self._progress is not None:
            done = self._done
            self._progress(
                Progress(
                    path=str(path),
                    bytes=done.bytes + read,
                    total_bytes=done.total_bytes,
                    files=done.files,
                    total_files=done.total_files,
                    added=done.added + added,
                )
            )


def _events(
    importer: Importer, source: Source, options: ImportOptions
) -> Generator[Event, None, None]:
    yield from importer.read(source, options)


def _listed(paths: str | Path | Iterable[str | Path]) -> list[str | Path]:
    return [paths] if isinstance(paths, str | Path) else list(paths)


def _state_folder(log: ConversationLog, state: str | Path | None) -> Path:
    if state is not None:
        return Path(os.path.expanduser(state))
    return log.path.with_name(f"{log.path.name}.imports")


def _modified(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _unknown(path: str, failed: tuple[str, ...]) -> FileReport:
    problems = tuple(Problem(None, reason) for reason in failed)
    return FileReport(path, "unknown", problems=problems, problem_count=len(problems))


def _failed(path: str, *reasons: str) -> FileReport:
    problems = tuple(Problem(None, reason) for reason in reasons)
    return FileReport(path, "failed", problems=problems, problem_count=len(problems))
