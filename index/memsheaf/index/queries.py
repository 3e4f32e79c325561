"""From a text to numbered terms with their statistics: what each word of a query stands for."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from .analysis import Analyzer
from .documents import Partition
from .impacts import inverse_frequency
from .neighbours import Near
from .sources import Source
from .store import Store
from .vocabulary import Vocabulary

VARIANTS = 64
"""Terms that a word stands for at the most."""

Asked = list[tuple[int, Near]]
"""Per distinct word how often it occurs, and the terms that it may stand for."""


@dataclass(slots=True)
class Query:
    """What to score: terms in a fixed order, and the statistics of the searched documents.

    Attributes:
        sequence: the number of each word in order, below -1 where it was never indexed.
        asked: the distinct words.
        terms: their terms that are held.
        held: number of documents that hold each term.
        factors: weight per term: occurrences in the query times similarity.
        strength: per term idf times factor times (k1 + 1).
        portion: per term the idf that a document matches with it, 0 where `shared` says it.
        shared: per word with several terms its idf, and their places with their similarity.
        whole: the idf of all words.
        k1: how slowly repeated terms saturate.
        b: how much long documents are held back.
        mean: mean length.
    """

    sequence: list[int]
    asked: Asked
    terms: list[int]
    held: list[int]
    factors: list[float]
    strength: list[float]
    portion: list[float]
    shared: list[tuple[float, list[tuple[int, float]]]]
    whole: float
    k1: float
    b: float
    mean: float


def prepare(
    store: Store,
    analyzer: Analyzer,
    text: str,
    where: Partition,
    k1: float,
    b: float,
    fuzzy: bool,
    prefix: bool,
) -> tuple[list[Source], Query]:
    """Take a snapshot of the selected partitions, and weigh the text's terms in it."""
    sequence, asked = words_of(store.vocabulary, analyzer, text)
    numbers = [n for _, slot in asked for n, _ in slot]
    sources, count, total, df = store.snapshot(numbers, where)
    held = {n: d for n, d in zip(numbers, df, strict=True) if d}
    if prefix or (fuzzy and len(held) < len(asked)):
        asked = _variants(store, analyzer, text, where, held, fuzzy, prefix)
        numbers = list(dict.fromkeys([n for _, slot in asked for n, _ in slot]))
        sources, count, total, df = store.snapshot(numbers, where)
        held = {n: d for n, d in zip(numbers, df, strict=True) if d}
    idf = {n: inverse_frequency(count, d) for n, d in held.items()}
    terms: list[int] = []
    factors: list[float] = []
    portion: list[float] = []
    shared: list[tuple[float, list[tuple[int, float]]]] = []
    whole, unknown = 0.0, inverse_frequency(count, 0)
    for times, slot in asked:
        live = slot if len(slot) < 2 else [pair for pair in slot if pair[0] in held]
        if len(live) < 2:
            number, share = live[0] if live else (-1, 0.0)
            own = idf.get(number)
            if own is None:
                whole += unknown
                continue
            terms.append(number)
            factors.append(times * share)
            portion.append(own * share)
            whole += own
        else:
            live = _nearest(live, held, store.vocabulary.text)
            most = max([idf[n] for n, _ in live])
            places = range(len(terms), len(terms) + len(live))
            shared.append((most, [(i, share) for i, (_, share) in zip(places, live, strict=True)]))
            terms += [n for n, _ in live]
            factors += [times * share for _, share in live]
            portion += [0.0] * len(live)
            whole += most
    if terms != numbers:
        place = {n: i for i, n in enumerate(numbers)}
        for source in sources:
            source.bounds = [source.bounds[place[n]] for n in terms]
    strength = [idf[n] * factor * (k1 + 1) for n, factor in zip(terms, factors, strict=True)]
    mean = total / count if total else 1.0
    number_held = [held[n] for n in terms]
    query = Query(
        sequence, asked, terms, number_held, factors, strength, portion, shared, whole, k1, b, mean
    )
    return sources, query


def words_of(vocabulary: Vocabulary, analyzer: Analyzer, text: str) -> tuple[list[int], Asked]:
    """Return the numbers of a text's words in order, and its distinct words."""
    sequence = _numbers(vocabulary, analyzer, text)
    return sequence, _words(sequence)


def _numbers(vocabulary: Vocabulary, analyzer: Analyzer, text: str) -> list[int]:
    """Return the numbers of the text's terms in order; an unknown one gets a number below -1."""
    found: list[int] = []
    unknown: dict[str, int] = {}
    for token in analyzer.tokenize(text):
        code = vocabulary.get(token, -1)
        if code >= 0:
            found.append(code)
            continue
        numbers = vocabulary.known(token)
        held = [number for number in numbers if number is not None]
        if len(held) < len(numbers):
            held = [
                unknown.setdefault(term, -2 - len(unknown)) if number is None else number
                for number, term in zip(numbers, analyzer.expand(token), strict=True)
            ]
        found += held
    return found


def _words(numbers: Sequence[int]) -> Asked:
    """Return words that stand for themselves, in order of their numbers."""
    times: dict[int, int] = {}
    for number in numbers:
        times[number] = times.get(number, 0) + 1
    return [(count, [(n, 1.0)] if n >= 0 else []) for n, count in sorted(times.items())]


def _variants(
    store: Store,
    analyzer: Analyzer,
    text: str,
    where: Partition,
    held: Mapping[int, int],
    fuzzy: bool,
    prefix: bool,
) -> Asked:
    """Return the words of a text with the terms near them; `held` has the df of its own terms."""
    tokens = [analyzer.expand(token) for token in analyzer.tokenize(text)]
    asked = sorted(Counter(chain.from_iterable(tokens)).items())
    numbers = {word: store.vocabulary.find(word) for word, _ in asked}
    slots: dict[str, Near] = {
        word: [] if number is None else [(number, 1.0)] for word, number in numbers.items()
    }
    near = store.neighbours()
    if prefix:
        for word, slot in slots.items():
            slot += [pair for pair in near.starting(word) if pair[0] != numbers[word]]
    if fuzzy:
        for word in _lacking(tokens, numbers, held):
            slots[word] += [pair for pair in near.similar(word) if pair[0] != numbers[word]]
    near_by = [n for slot in slots.values() for n, _ in slot]
    if len(near_by) > VARIANTS and any(where):  # few of all that is near is near there
        there = store.present(near_by, where)
        slots = {word: [p for p in slot if p[0] in there] for word, slot in slots.items()}
    return [(times, slots[word]) for word, times in asked]


def _nearest(live: Near, held: Mapping[int, int], text: Callable[[int], str]) -> Near:
    """Return the nearest terms, of equals those in more documents, then in order of the alphabet.

    Numbers would not do: they depend on what others wrote before.
    """
    ranked = sorted((-share, -held[n], n) for n, share in live)
    if len(ranked) > VARIANTS:
        last = ranked[VARIANTS - 1][:2]
        ranked = [row for row in ranked if row[:2] <= last]
    ranked.sort(key=lambda row: (row[0], row[1], text(row[2])))
    return [(n, -share) for share, _, n in ranked[:VARIANTS]]


def _lacking(
    tokens: Sequence[tuple[str, ...]], numbers: Mapping[str, int | None], held: Mapping[int, int]
) -> list[str]:
    """Return the words of tokens of which no document holds any."""
    lacking: dict[str, None] = {}
    for token in tokens:
        if not any(numbers[word] in held for word in token):
            lacking.update(dict.fromkeys(token))
    return list(lacking)
