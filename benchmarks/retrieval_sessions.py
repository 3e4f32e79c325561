"""Retrieval quality of session search: LoCoMo and LongMemEval, imported and searched as users do.

A LoCoMo talk is a user with one conversation per session; a LongMemEval question is a user with the
sessions that it is asked of. The settings are the defaults, the same for both.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

import snowballstemmer
from rank_bm25 import BM25Okapi

from benchmarks import locomo, longmemeval
from benchmarks.metrics import ndcg, recall, reciprocal_rank
from memsheaf.sessionsearch import NewItem, SessionSearch, open_sessions
from memsheaf.stack import Scope

__all__ = ["measure_locomo", "measure_longmemeval", "stemmed"]

LIMIT = 10
SESSIONS = 5
Figures = dict[str, float]
Report = Callable[[str, Figures], object]


def stemmed(text: str) -> list[str]:
    """Return the stems of the words of a text, for rank-bm25."""
    stems: list[str] = _STEMMER.stemWords(re.findall(r"\w+", text.lower()))
    return stems


_STEMMER = snowballstemmer.stemmer("english")


@contextmanager
def _sessions(index: str | None, preset: str | None) -> Iterator[SessionSearch]:
    with (
        tempfile.TemporaryDirectory(prefix="memsheaf-retrieval-") as folder,
        open_sessions(Path(folder), index=index, preset=preset) as sessions,
    ):
        yield sessions


def measure_locomo(talks: Sequence[locomo.Conversation], report: Report) -> None:
    """Measure turns of LoCoMo with the defaults, with the seed's preset and with FTS5."""
    for label, index, preset in (
        ("sessions", None, None),
        ("sessions, preset raxol", None, "raxol"),
        ("sessions, index sqlite", "sqlite", None),
    ):
        with _sessions(index, preset) as sessions:
            report(label, _locomo(sessions, talks))


def _locomo(sessions: SessionSearch, talks: Sequence[locomo.Conversation]) -> Figures:
    pairs: list[tuple[list[str], frozenset[str]]] = []
    for talk in talks:
        scope = Scope(user_id=talk.name)
        by_session: dict[str, list[locomo.Turn]] = {}
        for turn in talk.turns:
            by_session.setdefault(turn.key.partition(":")[0], []).append(turn)
        for name, turns in by_session.items():
            items = [NewItem("message", turn.text, metadata={"turn": turn.key}) for turn in turns]
            sessions.log.append(f"{talk.name}/{name}", items, scope)
        for question in talk.questions:
            hits = sessions.search(question.text, LIMIT, scope=scope)
            found = [str(hit.item.metadata["turn"]) for hit in hits]
            pairs.append((found, question.relevant))
    return {
        "recall@5": fmean(recall(found, right, 5) for found, right in pairs),
        "recall@10": fmean(recall(found, right, 10) for found, right in pairs),
        "mrr": fmean(reciprocal_rank(found, right) for found, right in pairs),
        "ndcg@10": fmean(ndcg(found, right, 10) for found, right in pairs),
    }


def measure_longmemeval(asked: Sequence[longmemeval.Question], report: Report) -> None:
    """Measure turns and sessions of LongMemEval, beside rank-bm25 on the same texts."""
    with _sessions(None, None) as sessions:
        report("sessions", _longmemeval(asked, lambda number, q: _found(sessions, number, q)))
    report("rank-bm25, stemmed", _longmemeval(asked, lambda number, q: _rank_bm25(q)))


Found = tuple[list[str], list[str]]
"""Turns as `<session>:<number>`, and sessions, best first."""


def _longmemeval(
    asked: Sequence[longmemeval.Question], find: Callable[[int, longmemeval.Question], Found]
) -> Figures:
    turns, gains, every, best = [], [], [], []
    for number, question in enumerate(asked):
        right = {
            f"{session.name}:{place}"
            for session in question.sessions
            for place, turn in enumerate(session.turns)
            if turn.answers
        }
        wanted = {session.name for session in question.sessions if session.answers}
        found, found_sessions = find(number, question)
        if right:
            turns.append(recall(found, right, 10))
            gains.append(ndcg(found, right, 10))
        every.append(wanted <= set(found_sessions[:SESSIONS]))
        best.append(bool(found_sessions) and found_sessions[0] in wanted)
    return {
        "turns recall@10": fmean(turns),
        "turns ndcg@10": fmean(gains),
        "sessions all@5": fmean(every),
        "sessions hit@1": fmean(best),
    }


def _found(sessions: SessionSearch, number: int, question: longmemeval.Question) -> Found:
    scope = Scope(user_id=f"q{number}")
    for session in question.sessions:
        items = [NewItem("message", turn.text, role=turn.role) for turn in session.turns]
        sessions.log.append(f"q{number}/{session.name}", items, scope)
    turns = [hit.id for hit in sessions.search(question.text, LIMIT, scope=scope)]
    rows = sessions.discover(question.text, SESSIONS, scope=scope)
    best = [row.conversation.id for row in rows]
    return _bare(turns), _bare(best)


def _bare(ids: list[str]) -> list[str]:
    return [id.partition("/")[2] for id in ids]


def _rank_bm25(question: longmemeval.Question) -> Found:
    """rank-bm25's Okapi at its defaults, over turns and over whole sessions."""
    keys, texts = [], []
    for session in question.sessions:
        for place, turn in enumerate(session.turns):
            keys.append(f"{session.name}:{place}")
            texts.append(stemmed(turn.text))
    words = stemmed(question.text)
    turns = BM25Okapi(texts).get_top_n(words, keys, n=LIMIT)
    names = [session.name for session in question.sessions]
    whole = [[w for turn in s.turns for w in stemmed(turn.text)] for s in question.sessions]
    return turns, BM25Okapi(whole).get_top_n(words, names, n=SESSIONS)
