"""Saved indexes: arrays in files that are never changed, named by one manifest that is replaced."""

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from .analysis import Analyzer
from .errors import SnapshotError
from .segment import Array, Segment
from .store import Store
from .strings import Strings
from .vocabulary import Vocabulary

FORMAT = 1
_MAGIC = b"MEMSHEAF"
_MANIFEST = "manifest"
_STRINGS = ("blob", "offset", "hashes", "order")
_LAST = np.iinfo(np.int64).max
_TYPES = {
    "blob": "<u1", "offset": "<i8", "hashes": "<u8", "order": "<i4",
    "terms": "<i4", "start": "<i8", "docs": "<i4", "codes": "<u2", "odd_at": "<i8", "odd": "<f8",
    "tokens": "<i4", "token_start": "<i8", "lengths": "<f8", "weights": "<f8", "inserted": "<i8",
    "first": "<i8", "df": "<i8", "dead": "<i8",
}  # fmt: skip


def dump(path: Path, meta: Any, arrays: Mapping[str, Array]) -> None:
    """Write arrays behind a checked header; the file is whole and on the disk, or absent."""
    layout, at = [], 0
    for name, array in arrays.items():
        layout.append([name, len(array), at])
        at += -(-array.nbytes // 64) * 64
    header = json.dumps({"format": FORMAT, "meta": meta, "arrays": layout, "size": at}).encode()
    head = _MAGIC + len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(8, "little")
    partial = path.with_name(f"{uuid4().hex}.tmp")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(head + header + bytes(-(len(head) + len(header)) % 64))
        for name, array in arrays.items():
            data = np.ascontiguousarray(array, _TYPES[name])
            file.write(data.data)
            file.write(bytes(-data.nbytes % 64))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def open_arrays(path: Path) -> tuple[Any, dict[str, Array]]:
    """Map the arrays of a file after checking its header and its size."""
    try:
        with path.open("rb") as file:
            head = file.read(24)
            size = int.from_bytes(head[8:16], "little")
            if head[:8] != _MAGIC or size > os.fstat(file.fileno()).st_size:
                raise SnapshotError(f"{path} is not a saved index; rebuild it")
            header = file.read(size)
        if zlib.crc32(header) != int.from_bytes(head[16:24], "little"):
            raise SnapshotError(f"{path} is damaged; rebuild it")
        content = json.loads(header)
        if content["format"] != FORMAT:
            raise SnapshotError(f"{path} has format {content['format']}, not {FORMAT}; rebuild it")
        begin = -(-(24 + size) // 64) * 64
        if path.stat().st_size != begin + content["size"]:
            raise SnapshotError(f"{path} is cut short; rebuild it")
        data = np.memmap(path, np.uint8, "r") if content["size"] else np.zeros(begin, np.uint8)
        arrays: dict[str, Array] = {}
        for name, count, at in content["arrays"]:
            kind = np.dtype(_TYPES[name])
            part = data[begin + at : begin + at + count * kind.itemsize]
            arrays[name] = np.asarray(part).view(kind)
    except OSError as error:
        raise SnapshotError(f"no saved index at {path}: {error.strerror}") from error
    return content["meta"], arrays


def write(
    path: str | os.PathLike[str], store: Store, settings: Mapping[str, Any], sequence: int
) -> None:
    """Save a store whose head is empty; segments that are there already are kept."""
    folder = Path(path)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for segment in store.segments:
        if not segment.name or not (folder / segment.name).exists():
            segment.name = f"{uuid4().hex}.segment"
            arrays = {**segment.arrays, **segment.ids.arrays, "first": segment.first}
            arrays["inserted"] = segment.arrays["order"]
            arrays["order"] = segment.ids.arrays["order"]
            dump(folder / segment.name, segment.partitions, arrays)
    vocabulary = f"{uuid4().hex}.terms"
    known = store.df[: store.vocabulary.count] > 0
    texts = zip(store.vocabulary.texts(), known.tolist(), strict=True)
    packed = Strings.pack([text if used else "" for text, used in texts])
    dump(folder / vocabulary, None, packed.arrays)
    dead = [
        np.zeros(0, np.int64) if s.died is None else np.flatnonzero(s.died != _LAST)
        for s in store.segments
    ]
    state = f"{uuid4().hex}.state"
    joined = np.concatenate([*dead, np.zeros(0, np.int64)])
    checksum = zlib.crc32(joined.tobytes())
    dump(folder / state, checksum, {"df": store.df[: store.vocabulary.count], "dead": joined})
    names = [s.name for s in store.segments]
    rows = zip(store.segments, dead, strict=True)
    meta = {
        "settings": dict(settings), "sequence": sequence, "live": store.live,
        "total": store.total, "inserted": store.inserted, "weighted": store.weighted,
        "segments": [[s.name, len(s), len(d)] for s, d in rows],
        "vocabulary": vocabulary, "state": state,
    }  # fmt: skip
    dump(folder / _MANIFEST, meta, {})
    for old in folder.iterdir():
        if old.suffix in (".segment", ".terms", ".state", ".tmp") and old.name not in (
            *names, vocabulary, state,
        ):  # fmt: skip
            old.unlink(missing_ok=True)


def read(path: str | os.PathLike[str], analyzer: Analyzer) -> tuple[dict[str, Any], int, Store]:
    """Map a saved store and check that its parts belong together."""
    folder = Path(path)
    meta, _ = open_arrays(folder / _MANIFEST)
    settings = dict(meta["settings"])
    made_by = settings.pop("analyzer")
    if made_by != analyzer.name:
        raise SnapshotError(f"{folder} was indexed by {made_by}, not {analyzer.name}; rebuild it")
    store = Store(analyzer.expand, settings["partition_fields"])
    _, terms = open_arrays(folder / meta["vocabulary"])
    store.vocabulary = Vocabulary(analyzer.expand, Strings(terms))
    checksum, state = open_arrays(folder / meta["state"])
    if (
        len(state["df"]) != store.vocabulary.count
        or zlib.crc32(state["dead"].tobytes()) != checksum
    ):
        raise SnapshotError(f"{folder} is damaged; rebuild it")
    store.df = state["df"].astype(np.int64)
    at = 0
    for name, size, gone in meta["segments"]:
        segment = _segment(folder / name, size)
        dead: npt.NDArray[Any] = state["dead"][at : at + gone]
        if gone:
            died = np.full(size, _LAST)
            died[dead] = 0
            segment.died, segment.gone = died, gone
        at += gone
        store.segments.append(segment)
    store.live, store.total = meta["live"], meta["total"]
    store.inserted, store.weighted = meta["inserted"], meta["weighted"]
    return settings, meta["sequence"], store


def _segment(path: Path, size: int) -> Segment:
    partitions, arrays = open_arrays(path)
    ids = {name: arrays.pop(name) for name in _STRINGS}
    first = np.array(arrays.pop("first"), np.int64)
    arrays["order"] = arrays.pop("inserted")
    whole = (
        len(arrays["lengths"]) == len(ids["order"]) == len(ids["offset"]) - 1 == size
        and len(arrays["start"]) == len(arrays["terms"]) + 1
        and arrays["start"][-1] == len(arrays["docs"]) == len(arrays["codes"])
        and arrays["token_start"][-1] == len(arrays["tokens"])
        and ids["offset"][-1] == len(ids["blob"])
        and first[-1] == size
        and len(first) == len(partitions) + 1
    )
    if not whole:
        raise SnapshotError(f"{path} is damaged; rebuild it")
    return Segment(arrays, Strings(ids), [tuple(p) for p in partitions], first, name=path.name)
