"""BM25 over documents that come and go."""

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .analysis import Analyzer, get_analyzer, terms
from .documents import Document, IndexHit, Partition, fill
from .errors import SnapshotError

Allow = Collection[str] | Callable[[str], bool]


class Matches:
    """All documents that match a query, at one moment.

    Attributes:
        scores: BM25 per match, float64.
        relevance: share of the query's idf per match.
        partitions: the distinct partitions of the matches.
        group: per match, the index of its partition in `partitions`.
        position: per match, its rank in its partition, in order of insertion, from 0.
    """

    def __init__(
        self,
        ids: list[str],
        scores: npt.NDArray[np.float64],
        relevance: npt.NDArray[np.float64],
        partitions: list[Partition],
        group: npt.NDArray[np.int64],
        position: npt.NDArray[np.int64],
        members: list[list[str]],
    ) -> None:
        self._ids, self._members = ids, members
        self.scores, self.relevance = scores, relevance
        self.partitions, self.group, self.position = partitions, group, position

    def __len__(self) -> int:
        return len(self.scores)

    def ids(self) -> list[str]:
        """Return the id of each match."""
        return self._ids

    def size(self, group: int) -> int:
        """Return how many documents the partition holds."""
        return len(self._members[group])

    def id(self, group: int, position: int) -> str:
        """Return the id of the document at `position` of a partition, matching or not."""
        return self._members[group][position]


class BM25Index:
    """An incremental BM25 index.

    >>> index = BM25Index("plain")
    >>> index.add("a", "the quick brown fox")
    >>> [hit.id for hit in index.search("fox")]
    ['a']
    """

    def __init__(
        self,
        analyzer: str | Analyzer = "english",
        *,
        k1: float = 0.9,
        b: float = 0.4,
        field_weights: Mapping[str, float] | None = None,
        partition_fields: int = 4,
    ) -> None:
        self.analyzer = get_analyzer(analyzer) if isinstance(analyzer, str) else analyzer
        self.k1, self.b = k1, b
        self.field_weights = dict(field_weights or {})
        self.partition_fields = partition_fields
        self.sequence = 0
        self._docs: dict[str, tuple[dict[str, float], float, Partition, float, Document]] = {}

    def __len__(self) -> int:
        return len(self._docs)

    def __contains__(self, id: object) -> bool:
        return id in self._docs

    def ids(self) -> Iterator[str]:
        """Return the ids of all documents, oldest first."""
        return iter(list(self._docs))

    def add(
        self,
        id: str,
        fields: Mapping[str, str] | str,
        *,
        partition: Partition = (),
        weight: float = 1.0,
    ) -> None:
        """Add or replace a document; the next search sees it."""
        filled = fill(partition, self.partition_fields)
        found: Counter[str] = Counter()
        length = 0.0
        for name, text in ({"": fields} if isinstance(fields, str) else fields).items():
            factor = self.field_weights.get(name, 1.0)
            words = terms(self.analyzer, text)
            length += factor * len(words)
            for word in words:
                found[word] += factor  # type: ignore[assignment]
        self._docs.pop(id, None)
        document = Document(id, fields, filled, weight)
        self._docs[id] = (dict(found), length, filled, weight, document)

    def add_many(self, documents: Iterable[Document]) -> None:
        """Add or replace many documents."""
        for document in documents:
            self.add(
                document.id,
                document.fields,
                partition=document.partition,
                weight=document.weight,
            )

    def remove(self, id: str) -> bool:
        """Remove a document; False if there was none."""
        return self._docs.pop(id, None) is not None

    def scores(
        self,
        text: str,
        *,
        where: Partition | None = None,
        allow: Allow | None = None,
        k1: float | None = None,
        b: float | None = None,
    ) -> Matches:
        """Score every matching document of the selected partitions."""
        k1, b = self.k1 if k1 is None else k1, self.b if b is None else b
        wanted = fill(where or (), self.partition_fields)
        selected = {
            id: doc
            for id, doc in self._docs.items()
            if all(w is None or w == has for w, has in zip(wanted, doc[2], strict=True))
        }
        query = Counter(terms(self.analyzer, text))
        count = len(selected)
        mean = sum(doc[1] for doc in selected.values()) / count if count else 1.0
        idf = {}
        for term in query:
            df = sum(term in doc[0] for doc in selected.values())
            idf[term] = math.log(1 + (count - df + 0.5) / (df + 0.5))
        members: dict[Partition, list[str]] = {}
        rows = []
        for id, (tf, length, partition, weight, _) in selected.items():
            group = members.setdefault(partition, [])
            group.append(id)
            if not any(term in tf for term in query):
                continue
            if allow is not None and not (allow(id) if callable(allow) else id in allow):
                continue
            norm = k1 * (1 - b + b * length / (mean or 1.0))
            score = sum(
                n * idf[t] * tf[t] * (k1 + 1) / (tf[t] + norm) for t, n in query.items() if t in tf
            )
            share = sum(idf[t] for t in query if t in tf) / sum(idf.values())
            rows.append((id, score * weight, share, partition, len(group) - 1))
        partitions = list(dict.fromkeys(row[3] for row in rows))
        return Matches(
            [row[0] for row in rows],
            np.array([row[1] for row in rows], np.float64),
            np.array([row[2] for row in rows], np.float64),
            partitions,
            np.array([partitions.index(row[3]) for row in rows], np.int64),
            np.array([row[4] for row in rows], np.int64),
            [members[partition] for partition in partitions],
        )

    def search(
        self,
        text: str,
        limit: int = 10,
        *,
        where: Partition | None = None,
        allow: Allow | None = None,
        k1: float | None = None,
        b: float | None = None,
        fuzzy: bool = False,
        prefix: bool = False,
        phrase: float = 0.0,
    ) -> list[IndexHit]:
        """Return the best documents, best first; ties by id."""
        found = self.scores(text, where=where, allow=allow, k1=k1, b=b)
        rows = zip(found.ids(), found.scores.tolist(), found.relevance.tolist(), strict=True)
        return [IndexHit(*row) for row in sorted(rows, key=lambda row: (-row[1], row[0]))[:limit]]

    def save(self, path: str | os.PathLike[str], *, sequence: int = 0) -> None:
        """Save the index; `sequence` says up to where the source is contained."""
        rows = [
            [d.id, d.fields if isinstance(d.fields, str) else dict(d.fields), d.partition, d.weight]
            for *_, d in self._docs.values()
        ]
        body = json.dumps([self.analyzer.name, self.field_weights, sequence, rows]).encode()
        target = Path(path)
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = target / "index.tmp"
        partial.write_bytes(hashlib.sha256(body).digest() + body)
        partial.chmod(0o600)
        partial.replace(target / "index.json")

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, analyzer: str | Analyzer = "english", **options: Any
    ) -> "BM25Index":
        """Open a saved index; its `sequence` says what it contains."""
        try:
            data = (Path(path) / "index.json").read_bytes()
        except OSError as error:
            raise SnapshotError(f"no saved index in {path}") from error
        if hashlib.sha256(data[32:]).digest() != data[:32]:
            raise SnapshotError(f"the saved index in {path} is damaged; rebuild it")
        name, weights, sequence, rows = json.loads(data[32:])
        index = cls(analyzer, **{"field_weights": weights, **options})
        if index.analyzer.name != name:
            raise SnapshotError(f"the saved index was made by analyzer {name}; rebuild it")
        index.add_many(Document(i, f, tuple(p), w) for i, f, p, w in rows)
        index.sequence = sequence
        return index
