"""Session search: raw past conversations, kept in a log and found by keyword."""

from .items import Conversation, Item, ItemOrigin, NewItem
from .log import ConversationLog, ItemOrder
from .subscriptions import Subscription

__all__ = [
    "Conversation",
    "ConversationLog",
    "Item",
    "ItemOrder",
    "ItemOrigin",
    "NewItem",
    "Subscription",
]
