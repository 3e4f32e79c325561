"""From a text to numbered terms with their statistics: what each word of a query stands for."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from .analysis import Analyzer
from .documents import Partition
from .neighbours import Near
from .search import Model, Query
from .sources import Source
from .store import Store

VARIANTS = 64
"""Terms that a word stands for at the most."""

Prepared = tuple[list[Source], Query, Model, npt.NDArray[np.int32]]


def prepare(
    store: Store,
    analyzer: Analyzer,
    text: str,
    where: Partition,
    k1: float,
    b: float,
    fuzzy: bool,
    prefix: bool,
) -> Prepared:
    """Take a snapshot of the selected partitions and look up the text's terms in it.

    Returns:
        What to search, the query, its model, and the terms' numbers in the order of the text (-2
        where a term is unknown).
    """
    tokens = [analyzer.expand(token) for token in analyzer.tokenize(text)]
    words = list(chain.from_iterable(tokens))
    asked = sorted(Counter(words).items())
    numbers = {word: store.vocabulary.find(word) for word, _ in asked}
    slots: dict[str, Near] = {
        word: [] if number is None else [(number, 1.0)] for word, number in numbers.items()
    }
    if prefix and asked:
        near = store.neighbours()
        for word, slot in slots.items():
            slot += [pair for pair in near.starting(word) if pair[0] != numbers[word]]
    terms, snapshot = _look_up(store, slots, where)
    if fuzzy:
        held = set(terms[snapshot[3] > 0].tolist())
        lacking = _lacking(tokens, numbers, held)
        if lacking:
            near = store.neighbours()
            for word in lacking:
                slots[word] += [pair for pair in near.similar(word) if pair[0] != numbers[word]]
            terms, snapshot = _look_up(store, slots, where)
    sources, count, total, df = snapshot
    query, chosen = _choose(asked, slots, dict(zip(terms.tolist(), df.tolist(), strict=True)))
    places = terms.searchsorted(query.terms).tolist()
    for source in sources:
        source.bounds = [source.bounds[place] for place in places]
    idf = np.log(1 + (count - chosen + 0.5) / (chosen + 0.5))
    unknown = float(np.log(1 + (count + 0.5) / 0.5))
    sequence = np.array([-2 if numbers[w] is None else numbers[w] for w in words], np.int32)
    model = Model(idf, unknown, k1, b, total / count if count else 1.0)
    return [source for source in sources if source.span], query, model, sequence


def _look_up(
    store: Store, slots: dict[str, Near], where: Partition
) -> tuple[npt.NDArray[np.int32], tuple[list[Source], int, float, npt.NDArray[np.int64]]]:
    terms = np.array(sorted({n for slot in slots.values() for n, _ in slot}), np.int32)
    return terms, store.snapshot(terms, where)


def _lacking(
    tokens: Sequence[tuple[str, ...]], numbers: dict[str, int | None], held: set[int]
) -> list[str]:
    """Return the words of tokens of which no document holds any."""
    lacking: dict[str, None] = {}
    for token in tokens:
        if not any(numbers[word] in held for word in token):
            lacking.update(dict.fromkeys(token))
    return list(lacking)


def _choose(
    asked: Sequence[tuple[str, int]], slots: dict[str, Near], held: dict[int, int]
) -> tuple[Query, npt.NDArray[np.float64]]:
    """Return the query of the terms that are held, the nearest of each word, and their df."""
    terms: list[int] = []
    factors: list[float] = []
    chosen: list[list[tuple[int, float]]] = []
    for word, times in asked:
        live = [(n, share) for n, share in slots[word] if held[n]]
        live = sorted(live, key=lambda pair: (-pair[1], -held[pair[0]], pair[0]))[:VARIANTS]
        chosen.append([(len(terms) + i, share) for i, (_, share) in enumerate(live)])
        terms += [n for n, _ in live]
        factors += [times * share for _, share in live]
    df = np.array([held[n] for n in terms], np.float64)
    return Query(np.array(terms, np.int32), np.array(factors), chosen), df
