"""Session search: raw past conversations, kept in a log and found by keyword."""

from .changes import Change, Changes
from .indexes import Candidate, Counts, IndexDamaged, ItemQuery, SessionIndex
from .items import Conversation, Item, ItemOrigin, NewItem
from .log import ConversationLog, ItemOrder
from .ranking import SessionRanking
from .results import ConversationHit, Explanation, SessionHit, SessionResult
from .session_search import SessionSearch, open_sessions
from .subscriptions import Subscription

__all__ = [
    "Candidate",
    "Change",
    "Changes",
    "Conversation",
    "ConversationHit",
    "ConversationLog",
    "Counts",
    "Explanation",
    "IndexDamaged",
    "Item",
    "ItemOrder",
    "ItemOrigin",
    "ItemQuery",
    "NewItem",
    "SessionHit",
    "SessionIndex",
    "SessionRanking",
    "SessionResult",
    "SessionSearch",
    "Subscription",
    "open_sessions",
]
