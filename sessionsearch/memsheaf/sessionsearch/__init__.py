"""Session search: raw past conversations, kept in a log and found by keyword."""

from .items import Conversation, Item, ItemOrigin, NewItem
from .log import ConversationLog, ItemOrder
from .ranking import SessionRanking
from .results import ConversationHit, Explanation, SessionHit, SessionResult
from .session_search import SessionSearch, open_sessions
from .subscriptions import Subscription

__all__ = [
    "Conversation",
    "ConversationHit",
    "ConversationLog",
    "Explanation",
    "Item",
    "ItemOrder",
    "ItemOrigin",
    "NewItem",
    "SessionHit",
    "SessionRanking",
    "SessionResult",
    "SessionSearch",
    "Subscription",
    "open_sessions",
]
