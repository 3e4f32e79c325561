"""The user model: what is known of a user, derived in the background and traceable."""

from .deriver import Deriver, QuestioningDeriver, load_deriver
from .operations import Add, Confirm, Operation, Rejection, Retract, Supersede
from .profile import Line, LineKind, LineOrigin, Profile

__all__ = [
    "Add",
    "Confirm",
    "Deriver",
    "Line",
    "LineKind",
    "LineOrigin",
    "Operation",
    "Profile",
    "QuestioningDeriver",
    "Rejection",
    "Retract",
    "Supersede",
    "load_deriver",
]
