"""Retrieval quality through the product's own calls, beside rank-bm25 in the same run.

Every turn of a LoCoMo conversation becomes a record, one scope per conversation, and every question
is asked through `MemoryStack.search` with the defaults. Two more runs set `local` beside a provider
that answers everything with noise, and beside a double that answers by meaning alone. With
`--through sessions` the turns are items of conversations, and session search is asked.

Run: python -m benchmarks.retrieval --data locomo.json --dataset locomo --json retrieval.json
"""

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

from rank_bm25 import BM25Okapi

from benchmarks import longmemeval
from benchmarks.locomo import Conversation, load
from benchmarks.metrics import ndcg, recall, reciprocal_rank
from benchmarks.retrieval_sessions import measure_locomo, measure_longmemeval, stemmed
from memsheaf.index import content_words, get_analyzer, terms
from memsheaf.providers.local import LocalStore
from memsheaf.providers.sqlite import SqliteStore
from memsheaf.stack import Hit, MemoryRecord, MemoryStack, Scope, StackSettings, hookimpl

LIMIT = 10
BOUND_RECALL = 0.595
BOUND_NOISE = 0.97
NOISE_HITS = 5
DEMOTIONS = (0.3, 0.4, 0.5, 0.56, 0.6, 0.7, 1.0)

Figures = dict[str, float]
Ranking = list[list[list[str]]]
"""The turn keys found, per conversation and question."""

_UNRELATED = (
    "Invoice 4471: pallet freight, Rotterdam terminal, net thirty",
    "Compiler flags: loop unrolling, vectorised kernels, link-time optimisation",
    "Tidal gauge calibration, estuary buoy seven, salinity drift",
    "Statute twelve: tariff schedule, bonded warehouse, excise",
    "Basalt viscosity, caldera tremor, seismograph array",
    "Chess opening theory: Gruenfeld, exchange variation",
    "Torque table: flange bolts, gasket, hydraulic press",
)


class Noise:
    """Answers everything with the same number of hits that have nothing to do with it."""

    inline = True

    def __init__(self, texts: Sequence[str], relevance: float | None = None) -> None:
        self._texts = texts
        self._relevance = relevance
        self._random = random.Random(0)

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int) -> list[Hit]:
        """Return records that nobody asked for."""
        drawn = self._random.sample(self._texts, min(NOISE_HITS, limit))
        return [
            Hit(MemoryRecord(content=content, scope=scope), 1.0 - 0.1 * place, self._relevance)
            for place, content in enumerate(drawn)
        ]


class Meaning:
    """Knows the right turns, for the questions that share no word with them."""

    inline = True

    def __init__(
        self, answers: dict[tuple[str, str], list[MemoryRecord]], relevance: float | None
    ) -> None:
        self._answers = answers
        self._relevance = relevance

    @hookimpl
    def search(self, text: str, scope: Scope, limit: int) -> list[Hit]:
        """Return the right turns, or nothing."""
        found = self._answers.get((scope.user_id or "", text), [])[:limit]
        return [
            Hit(record, 1.0 - place / 100, self._relevance) for place, record in enumerate(found)
        ]


def figures(conversations: Sequence[Conversation], ranking: Ranking) -> Figures:
    """Return the metrics, averaged over all questions."""
    pairs = [
        (found, question.relevant)
        for conversation, answers in zip(conversations, ranking, strict=True)
        for question, found in zip(conversation.questions, answers, strict=True)
    ]
    return {
        "recall@5": fmean(recall(found, relevant, 5) for found, relevant in pairs),
        "recall@10": fmean(recall(found, relevant, 10) for found, relevant in pairs),
        "mrr": fmean(reciprocal_rank(found, relevant) for found, relevant in pairs),
        "ndcg@10": fmean(ndcg(found, relevant, 10) for found, relevant in pairs),
    }


def scope_of(conversation: Conversation) -> Scope:
    """Return the scope that holds one conversation."""
    return Scope(user_id=conversation.name)


def records_of(conversations: Sequence[Conversation]) -> list[list[MemoryRecord]]:
    """Return a record per turn; its metadata holds the turn's key."""
    return [
        [
            MemoryRecord(content=turn.text, scope=scope_of(c), metadata={"turn": turn.key})
            for turn in c.turns
        ]
        for c in conversations
    ]


def ask(stack: MemoryStack, conversations: Sequence[Conversation]) -> Ranking:
    """Return what the stack finds for every question; a failed provider ends the run."""
    ranking: Ranking = []
    for conversation in conversations:
        answers = []
        for question in conversation.questions:
            result = stack.search(question.text, scope_of(conversation), LIMIT)
            if result.partial:
                raise SystemExit(f"incomplete: {'; '.join(map(str, result.outcomes))}")
            answers.append([str(hit.record.metadata.get("turn")) for hit in result])
        ranking.append(answers)
    return ranking


def through(
    providers: Sequence[object],
    conversations: Sequence[Conversation],
    records: Sequence[Sequence[MemoryRecord]],
    demotion: float | None = None,
) -> Figures:
    """Store every turn in a stack of these providers, ask every question, and measure."""
    settings = StackSettings() if demotion is None else StackSettings(demotion=demotion)
    with MemoryStack(providers, settings=settings) as stack:
        for batch in records:
            if any(receipt.partial for receipt in stack.store_many(batch)):
                raise SystemExit("a turn was not stored everywhere")
        return figures(conversations, ask(stack, conversations))


def rank_bm25(conversations: Sequence[Conversation]) -> Figures:
    """Measure rank-bm25's Okapi at its defaults on the same text, stemmed."""
    ranking: Ranking = []
    for conversation in conversations:
        index = BM25Okapi([stemmed(turn.text) for turn in conversation.turns])
        keys = [turn.key for turn in conversation.turns]
        ranking.append(
            [index.get_top_n(stemmed(q.text), keys, n=LIMIT) for q in conversation.questions]
        )
    return figures(conversations, ranking)


def without_common_word(
    conversations: Sequence[Conversation], records: Sequence[Sequence[MemoryRecord]]
) -> dict[tuple[str, str], list[MemoryRecord]]:
    """Return the right records of the questions that share no content word with any of them."""
    rules = get_analyzer("english")
    answers = {}
    for conversation, batch in zip(conversations, records, strict=True):
        held = {str(record.metadata["turn"]): record for record in batch}
        for question in conversation.questions:
            wanted = set(terms(rules, content_words(question.text)))
            right = [held[key] for key in sorted(question.relevant)]
            if not any(wanted.intersection(terms(rules, record.content)) for record in right):
                answers[(conversation.name, question.text)] = right
    return answers


def beside(
    conversations: Sequence[Conversation], records: Sequence[Sequence[MemoryRecord]]
) -> dict[str, Callable[[], object]]:
    """Return makers of the providers that are set beside `local`."""
    answers = without_common_word(conversations, records)
    foreign = [f"{turn.text} (elsewhere)" for c in conversations for turn in c.turns]
    return {
        "noise": lambda: Noise(_UNRELATED),
        "noise, the talk's own words": lambda: Noise(foreign),
        "meaning": lambda: Meaning(answers, None),
        "meaning, relevance 0.8": lambda: Meaning(answers, 0.8),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure retrieval quality.")
    parser.add_argument("--data", type=Path, required=True, help="the dataset's file")
    parser.add_argument("--dataset", choices=["locomo", "longmemeval"], default="locomo")
    arms_of = ["stack", "local", "sqlite", "sessions"]
    parser.add_argument("--through", choices=arms_of, help="only this one")
    parser.add_argument("--sweep", action="store_true", help="measure several demotion factors")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()

    rows: dict[str, Figures] = {}

    def measured(name: str, row: Figures) -> Figures:
        rows[name] = row
        print(f"{name:40}", *(f"{key} {value:.4f}" for key, value in row.items()), flush=True)
        return row

    if options.dataset == "longmemeval":
        if options.through != "sessions":
            parser.error("longmemeval is measured with --through sessions")
        questions = longmemeval.load(options.data)
        print(f"{len(questions)} questions")
        measure_longmemeval(questions, measured)
    else:
        _measure_locomo(options, measured)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


def _measure_locomo(
    options: argparse.Namespace, measured: Callable[[str, Figures], Figures]
) -> None:
    conversations = load(options.data)
    records = records_of(conversations)
    asked = sum(len(c.questions) for c in conversations)
    print(f"{len(conversations)} conversations, {asked} questions of categories 1-4")
    bounds: list[str] = []
    if options.through in (None, "sessions"):
        measure_locomo(conversations, measured)
    with tempfile.TemporaryDirectory(prefix="memsheaf-retrieval-") as folder:
        home = Path(folder)
        arms: dict[str, Callable[[], list[object]]] = {
            "local": lambda: [LocalStore(home / "local")],
            "sqlite": lambda: [SqliteStore(home / "alone.db")],
            "stack": lambda: [LocalStore(home / "stacked"), SqliteStore(home / "stacked.db")],
        }
        for name, make in arms.items():
            if options.through in (None, name):
                row = measured(name, through(make(), conversations, records))
                if name == "stack":
                    bounds.append(f"stack R@10 {row['recall@10']:.4f}, bound >= {BOUND_RECALL}")
    measured("rank-bm25, stemmed", rank_bm25(conversations))
    if options.through is None:
        alone = through([LocalStore()], conversations, records)["recall@10"]
        unheard = len(without_common_word(conversations, records))
        print(f"{unheard} questions share no word with their evidence")
        for factor in DEMOTIONS if options.sweep else (None,):
            for name, maker in beside(conversations, records).items():
                label = name if factor is None else f"{name}, demotion {factor:g}"
                row = through([LocalStore(), maker()], conversations, records, factor)
                row["of local alone"] = row["recall@10"] / alone
                measured(f"local + {label}", row)
                if factor is None:
                    least = f">= {BOUND_NOISE}" if name.startswith("noise") else "> 1"
                    ratio = row["of local alone"]
                    bounds.append(f"local + {name}: {ratio:.4f} of local's R@10, bound {least}")
    print(*bounds, sep="\n")


if __name__ == "__main__":
    main()
