"""The user model: what is known of a user, derived in the background and traceable."""

from .applying import apply
from .asking import Answer
from .async_model import AsyncUserModel
from .batches import Handover
from .deriver import Deriver, QuestioningDeriver, load_deriver
from .editing import Forgotten
from .errors import DeriverFailed, QueueFull
from .model import UserModel
from .operations import Add, Confirm, Operation, Rejection, Retract, Supersede
from .owners import owner_of
from .profile import Line, LineKind, LineOrigin, Profile
from .profiles import Change
from .provider import UserModelProvider
from .said import said
from .settings import RefreshSettings
from .status import QueuedItem, QueueStatus

__all__ = [
    "Add",
    "Answer",
    "AsyncUserModel",
    "Change",
    "Confirm",
    "Deriver",
    "DeriverFailed",
    "Forgotten",
    "Handover",
    "Line",
    "LineKind",
    "LineOrigin",
    "Operation",
    "Profile",
    "QuestioningDeriver",
    "QueueFull",
    "QueueStatus",
    "QueuedItem",
    "RefreshSettings",
    "Rejection",
    "Retract",
    "Supersede",
    "UserModel",
    "UserModelProvider",
    "apply",
    "load_deriver",
    "owner_of",
    "said",
]
