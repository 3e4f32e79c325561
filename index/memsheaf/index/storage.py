"""Saved indexes: files that are never changed, named by one manifest that is replaced."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from .analysis import Analyzer
from .array_file import ArrayFile, write_arrays
from .errors import SnapshotError
from .segment import Segment
from .store import Store
from .strings import Strings
from .vocabulary import Vocabulary

_MANIFEST = "manifest"
_SUFFIXES = (".segment", ".terms", ".state", ".tmp")
_STRINGS = ("blob", "offset", "hashes", "places")
_COLUMNS = (
    *("terms", "start", "docs", "codes", "odd_at", "odd"),
    *("tokens", "token_start", "lengths", "weights", "order"),
)
_LAST = np.iinfo(np.int64).max


def write(
    path: str | os.PathLike[str], store: Store, settings: Mapping[str, Any], sequence: int
) -> None:
    """Save a store whose head is empty; segments that are there already are kept."""
    folder = Path(path)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for segment in store.segments:
        if not segment.name or not (folder / segment.name).exists():
            segment.name = f"{uuid4().hex}.segment"
            arrays = {name: segment.arrays[name] for name in _COLUMNS}
            arrays |= {name: segment.ids.arrays[name] for name in _STRINGS}
            arrays["first"] = segment.first
            beside = {"partitions": segment.partitions, "rounding": segment.rounding}
            write_arrays(folder / segment.name, beside, arrays)
    vocabulary, state = f"{uuid4().hex}.terms", f"{uuid4().hex}.state"
    df = store.df[: store.vocabulary.count]
    texts = zip(store.vocabulary.texts(), (df > 0).tolist(), strict=True)
    packed = Strings.pack([text if used else "" for text, used in texts])
    write_arrays(folder / vocabulary, None, packed.arrays)
    dead = [
        np.zeros(0, np.int64) if s.died is None else np.flatnonzero(s.died != _LAST)
        for s in store.segments
    ]
    write_arrays(
        folder / state, None, {"df": df, "dead": np.concatenate([*dead, np.zeros(0, np.int64)])}
    )
    rows = zip(store.segments, dead, strict=True)
    manifest: dict[str, Any] = {
        "settings": dict(settings), "sequence": sequence, "live": store.live,
        "total": store.total, "inserted": store.inserted, "weighted": store.weighted,
        "segments": [[s.name, len(s), len(d)] for s, d in rows],
        "vocabulary": vocabulary, "state": state,
    }  # fmt: skip
    _sync(folder)
    write_arrays(folder / _MANIFEST, manifest, {})
    _sync(folder)
    named = {vocabulary, state, *(segment.name for segment in store.segments)}
    for old in folder.iterdir():
        if old.suffix in _SUFFIXES and old.name not in named:
            old.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Put the names of the files on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: str | os.PathLike[str], analyzer: Analyzer) -> tuple[dict[str, Any], int, Store]:
    """Map a saved store and check that its parts belong together."""
    folder = Path(path)
    meta = ArrayFile(folder / _MANIFEST).meta
    settings = dict(meta["settings"])
    made_by = settings.pop("analyzer")
    if made_by != analyzer.name:
        raise SnapshotError(f"{folder} was indexed by {made_by}, not {analyzer.name}; rebuild it")
    store = Store(analyzer.expand, settings["partition_fields"])
    store.vocabulary = Vocabulary(analyzer.expand, Strings(ArrayFile(folder / meta["vocabulary"])))
    state = ArrayFile(folder / meta["state"])
    store.df = state["df"].copy()
    at = 0
    for name, size, gone in meta["segments"]:
        segment = _segment(folder / name)
        if gone:
            segment.kill(state["dead"][at : at + gone], 0)
        if len(segment) != size or segment.gone != gone:
            raise SnapshotError(f"{folder} is damaged; rebuild it")
        at += gone
        store.segments.append(segment)
    if len(store.df) != store.vocabulary.count or at != state.lengths["dead"]:
        raise SnapshotError(f"{folder} is damaged; rebuild it")
    store.live, store.total = meta["live"], meta["total"]
    store.inserted, store.weighted = meta["inserted"], meta["weighted"]
    return settings, meta["sequence"], store


def _segment(path: Path) -> Segment:
    file = ArrayFile(path)
    partitions = [tuple(partition) for partition in file.meta["partitions"]]
    longest, fractional, smallest = file.meta["rounding"]
    return Segment(
        file,
        Strings(file),
        partitions,
        file["first"],
        (longest, fractional, smallest),
        name=path.name,
    )
