"""What the speed benchmarks index and ask: a synthetic Zipf corpus, or text from a path."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

VOCABULARY = 200_000
MEDIAN_WORDS = 22
QUERY_WORDS = 8

_ONSETS = ["b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr"]
_SYLLABLES = [onset + vowel for onset in _ONSETS for vowel in "aeiou"]
_ENDINGS = ["", "n", "r", "ns", "ted", "ting", "tly", "ner", "tion", "ments"]


class Record(NamedTuple):
    """One text with its key and tags."""

    id: str
    text: str
    tags: str


def word(rank: int) -> str:
    """Return the word of a rank: pronounceable, short where frequent, inflected as English is.

    >>> [word(rank) for rank in (0, 1, 90, 150_000)]
    ['ba', 'bener', 'beca', 'gasusa']
    """
    ending = _ENDINGS[rank * 7 % 10]
    syllables = ""
    while True:
        rank, rest = divmod(rank, len(_SYLLABLES))
        syllables = _SYLLABLES[rest] + syllables
        if rank == 0:
            return syllables + ending


class Zipf:
    """Words with p(rank) ~ 1 / (rank + 2.7) ** 1.05; records of 22 words (median, log-normal)."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._words = np.array([word(rank) for rank in range(VOCABULARY)], dtype=object)
        share = 1 / (np.arange(1, VOCABULARY + 1) + 2.7) ** 1.05
        self._cumulated = np.cumsum(share / share.sum())

    def _draw(self, rng: np.random.Generator, count: int) -> list[str]:
        ranks = np.searchsorted(self._cumulated, rng.random(count))
        drawn: list[str] = self._words[np.minimum(ranks, VOCABULARY - 1)].tolist()
        return drawn

    def records(self, size: int, *, first: int = 0) -> Iterator[Record]:
        """Yield `size` records with ids from `first` on, each with two tags of a thousand."""
        rng = np.random.default_rng([self.seed, first])
        for start in range(0, size, 10_000):
            count = min(10_000, size - start)
            lengths = rng.lognormal(np.log(MEDIAN_WORDS), 0.5, count).astype(int).clip(4, 200)
            words = iter(self._draw(rng, int(lengths.sum())))
            tags = self._words[100 + rng.integers(0, 1000, (count, 2))].tolist()
            for row, length in enumerate(lengths.tolist()):
                text = " ".join(next(words) for _ in range(length))
                yield Record(f"r{first + start + row:08}", text, " ".join(tags[row]))

    def queries(self, count: int) -> list[str]:
        """Return queries of 8 words from the same distribution."""
        rng = np.random.default_rng([self.seed, 1 << 40])
        return [" ".join(self._draw(rng, QUERY_WORDS)) for _ in range(count)]


class RealText:
    """Text found at a path: lines of files, and the strings called text or content in JSON."""

    def __init__(self, path: Path, seed: int = 0) -> None:
        files = (
            sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        )
        self._texts = [text for file in files for text in _texts_of(file)]
        self.seed = seed
        if not self._texts:
            raise SystemExit(f"no text is found in {path}")

    def __len__(self) -> int:
        return len(self._texts)

    def records(self, size: int, *, first: int = 0) -> Iterator[Record]:
        """Yield `size` records with ids from `first` on; the texts repeat when they run out."""
        for number in range(first, first + size):
            yield Record(f"r{number:08}", self._texts[number % len(self._texts)], "")

    def queries(self, count: int) -> list[str]:
        """Return queries of 8 neighbouring words from the texts."""
        rng = random.Random(self.seed)
        queries = []
        for _ in range(count):
            words = re.findall(r"\w+", rng.choice(self._texts)) or ["nothing"]
            start = rng.randrange(max(1, len(words) - QUERY_WORDS))
            queries.append(" ".join(words[start : start + QUERY_WORDS]))
        return queries


def _texts_of(file: Path) -> Iterator[str]:
    content = file.read_text("utf-8", errors="replace")
    if file.suffix == ".json":
        yield from _strings(json.loads(content))
        return
    for line in content.splitlines():
        if file.suffix == ".jsonl":
            yield from _strings(json.loads(line))
        elif line.strip():
            yield line.strip()


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, str) and key in ("text", "content") and each.strip():
                yield " ".join(each.split())
            else:
                yield from _strings(each)
