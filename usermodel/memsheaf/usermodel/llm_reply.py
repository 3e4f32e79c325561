"""A model's reply becomes operations: read strictly, and grounded in the words that it cites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memsheaf.models import BadReply, JsonNotFound, extract_json

from .llm_grounding import is_about, is_quoted, shares_words, supports
from .operations import Add, Confirm, Operation, Retract, Supersede
from .profile import LineKind, LineOrigin, Profile

__all__ = ["Words", "read_operations", "read_verdicts"]

MAX_REPLY = 64_000
MAX_OPERATIONS = 50
MAX_TEXT = 200
MAX_CONFIDENCE = 0.9
"""What a model is sure of, it may still have misread."""


class Words:
    """The items of a batch as the model knows them: handles, and the words behind them."""

    def __init__(self, said: Mapping[str, str]) -> None:
        """Take the user's words by item id."""
        self.ids = {f"i{number}": item_id for number, item_id in enumerate(said, 1)}
        self.handles = {item_id: handle for handle, item_id in self.ids.items()}
        self.by_handle = {self.handles[item_id]: words for item_id, words in said.items()}

    def cited(self, handles: Sequence[str]) -> dict[str, str]:
        """The words behind known handles, by item id."""
        return {self.ids[h]: self.by_handle[h] for h in handles if h in self.ids}


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


_Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
_Handles = Annotated[list[Annotated[str, Field(max_length=20)]], Field(min_length=1, max_length=50)]


class _Cited(_Strict):
    items: _Handles
    quote: Annotated[str, Field(min_length=1, max_length=1_000)]


class _Stated(_Cited):
    kind: Literal["preference", "goal", "habit", "fact", "instruction"]
    text: _Text
    confidence: Annotated[float, Field(ge=0, le=1)]


class _Adding(_Stated):
    op: Literal["add"]


class _Confirming(_Cited):
    op: Literal["confirm"]
    line: _Text


class _Superseding(_Stated):
    op: Literal["supersede"]
    line: _Text


class _Retracting(_Cited):
    op: Literal["retract"]
    line: _Text
    reason: Annotated[str, Field(max_length=MAX_TEXT)] = ""


_Proposed = Annotated[_Adding | _Confirming | _Superseding | _Retracting, Field(discriminator="op")]


class _Proposal(_Strict):
    proposed: _Proposed


class _Verdict(_Strict):
    proposal: int
    supported: bool
    contradicts: str | None = None


def read_operations(reply: str, profile: Profile, words: Words) -> tuple[Operation, ...]:
    """The operations of a reply that hold; one that does not is left out.

    Raises:
        BadReply: The reply is not such an object, or none of its operations has the right form.
    """
    rows = _rows(reply, "operations")
    formed = [proposal for row in rows if (proposal := _formed(row)) is not None]
    if rows and not formed:
        raise BadReply("no operation has the fields that were asked for")
    grounded = (_grounded(proposal, profile, words) for proposal in formed)
    return tuple(operation for operation in grounded if operation is not None)


def read_verdicts(
    reply: str, profile: Profile, operations: Sequence[Operation]
) -> tuple[Operation, ...]:
    """The operations that a second look supports; one without a verdict is left out.

    A new line that contradicts a current one supersedes it.

    Raises:
        BadReply: The reply is not such an object, or none of its verdicts has the right form.
    """
    rows = _rows(reply, "verdicts")
    verdicts: dict[int, _Verdict] = {}
    for row in rows:
        try:
            verdict = _Verdict.model_validate(row)
        except ValidationError:
            continue
        verdicts[verdict.proposal] = verdict
    if operations and not verdicts:
        raise BadReply("no verdict has the fields that were asked for")
    kept = []
    for number, operation in enumerate(operations, 1):
        found = verdicts.get(number)
        if found is not None and found.supported:
            kept.append(_superseding(operation, found.contradicts, profile))
    return tuple(kept)


def _rows(reply: str, name: str) -> list[object]:
    if len(reply) > MAX_REPLY:
        raise BadReply(f"it is longer than {MAX_REPLY} characters")
    try:
        value = extract_json(reply)
    except JsonNotFound as error:
        raise BadReply("it holds no JSON object") from error
    rows = value.get(name) if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise BadReply(f"its {name} are no list")
    if len(rows) > MAX_OPERATIONS:
        raise BadReply(f"it has more than {MAX_OPERATIONS} {name}")
    return rows


def _formed(row: object) -> _Proposed | None:
    try:
        return _Proposal.model_validate({"proposed": row}).proposed
    except ValidationError:
        return None


def _grounded(proposal: _Proposed, profile: Profile, words: Words) -> Operation | None:
    """The operation, if its line is current and the words that it cites can have given it."""
    cited = words.cited(proposal.items)
    if not any(is_quoted(proposal.quote, said) for said in cited.values()):
        return None
    sources, said = tuple(cited), "\n".join(cited.values())
    if isinstance(proposal, _Adding):
        stated = _stated(proposal, said)
        return stated and Add(*stated, sources)
    line = profile.find(proposal.line)
    if line is None or not line.is_current:
        return None
    if isinstance(proposal, _Superseding):
        stated = _stated(proposal, f"{said}\n{line.text}")
        if stated is None or line.origin is LineOrigin.USER or not shares_words(stated[1], said):
            return None
        if not is_about(line.text, f"{said}\n{stated[1]}"):
            return Add(*stated, sources)  # one that bears on nothing of it takes no line's place
        return Supersede(line.id, *stated, sources, line.subject)
    if not shares_words(line.text, said):
        return None
    if isinstance(proposal, _Confirming):
        return Confirm(line.id, sources)
    return Retract(line.id, sources, " ".join(proposal.reason.split()))


def _stated(proposal: _Stated, said: str) -> tuple[LineKind, str, float] | None:
    text = " ".join(proposal.text.split())
    if not text.isprintable() or any(c in text for c in "<>`") or not supports(said, text):
        return None
    return LineKind(proposal.kind), text, min(proposal.confidence, MAX_CONFIDENCE)


def _superseding(operation: Operation, line_id: str | None, profile: Profile) -> Operation:
    line = profile.find(line_id) if line_id and isinstance(operation, Add) else None
    if line is None or not line.is_current or line.origin is LineOrigin.USER:
        return operation
    assert isinstance(operation, Add)
    return Supersede(
        line.id,
        operation.kind,
        operation.text,
        operation.confidence,
        operation.sources,
        line.subject,
    )
