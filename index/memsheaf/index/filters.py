"""Which documents a search may return: by ids, by a mask, or by a test on an id."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt

from .head import Head
from .segment import Ints
from .sources import Source
from .strings import Strings

Allow = Collection[str] | npt.NDArray[np.bool_] | Callable[[str], bool]


def allowed(sources: Sequence[Source], allow: Allow) -> list[Ints]:
    """Return the documents of each source that a filter names and that live, in order.

    Raises:
        ValueError: a mask has another length than the index.
    """
    if isinstance(allow, np.ndarray):
        found = _masked(sources, allow)
    elif callable(allow):
        found = [
            np.array([doc for doc in source.matching().tolist() if allow(source.part.ids[doc])])
            for source in sources
        ]
    else:
        found = _named(sources, set(allow))
    chosen = []
    for source, docs in zip(sources, found, strict=True):
        docs = docs[(docs >= source.lo) & (docs < source.lo + source.span)].astype(np.int64)
        alive = source.alive(docs)
        chosen.append(docs if alive is None else docs[alive])
    return chosen


def _named(sources: Sequence[Source], ids: set[str]) -> list[Ints]:
    packed = Strings.pack(list(ids))
    found = []
    for source in sources:
        part = source.part
        if isinstance(part, Head):
            named = [id in ids for id in part.ids[: source.count]]
            found.append(np.array(named, bool).nonzero()[0])
        else:
            found.append(np.sort(part.ids.shared(packed)) if ids else np.zeros(0, np.int64))
    return found


def _masked(sources: Sequence[Source], mask: npt.NDArray[np.bool_]) -> list[Ints]:
    live = []
    for source in sources:
        docs = np.arange(source.count)
        alive = source.alive(docs)
        live.append(docs if alive is None else docs[alive])
    orders = [s.part.insertion()[docs] for s, docs in zip(sources, live, strict=True)]
    ordered = np.sort(np.concatenate([np.zeros(0, np.int64), *orders]))
    if len(ordered) != len(mask):
        raise ValueError(
            f"the mask has {len(mask)} entries and the index {len(ordered)} documents: "
            "make one with an entry per document in the order of ids()"
        )
    return [
        docs[mask[ordered.searchsorted(order)]] for docs, order in zip(live, orders, strict=True)
    ]
