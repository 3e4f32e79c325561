"""The tables of a configuration beside the stack's own settings, and their validation."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from .errors import ConfigError
from .mount import Mode
from .scope import Scope

__all__ = ["Placement", "ScopeSettings", "did_you_mean", "validated"]

Model = TypeVar("Model", bound=BaseModel)
_RESERVED = {"sessions", "stack"}
"""What lies beside the providers' folders: past conversations, and what the stack remembers."""


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ScopeSettings(_Settings):
    """The ``[scope]`` table: whose memory a verb without a scope means."""

    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    namespace: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        Scope(**self.model_dump())
        return self


class Placement(_Settings):
    """The keys of a ``[[providers]]`` table that every type has.

    Attributes:
        name: Its name in outcomes and of its folder; the type where not given.
        type: The registered name of its factory.
        enabled: Whether it is mounted.
        mode: What it is used for; found from what it can do where not given.
        weight: Its weight in the fusion.
        timeout: Seconds for one call; the stack's where not given.
        scope: Pins it: it holds the records of this scope only.
    """

    name: str = ""
    type: Annotated[str, Field(min_length=1)]
    enabled: bool = True
    mode: Mode | None = None
    weight: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)] = 1.0
    timeout: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] | None = None
    scope: ScopeSettings | None = None

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        # It names a folder too, so it must not be able to leave its parent.
        if value and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", value):
            raise ValueError("must be 1 to 64 letters, digits, '-', '_' or '.'")
        if value.casefold() in _RESERVED:
            raise ValueError(f"{value} is a folder of Memsheaf's own; choose another")
        return value


def validated(model: type[Model], values: Mapping[str, Any], where: Any) -> Model:
    """Build a model, with an error of ours that names file, key and fix.

    Args:
        model: The model.
        values: Its values by field.
        where: Called with the location of the wrong key; returns the start of the message.

    Raises:
        ConfigError: A key is unknown or its value is outside its rule; never shows the value.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError("; ".join(_told(model, part, where) for part in _parts(error))) from None


def _parts(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False, include_input=False, include_context=False))


def _told(model: type[BaseModel], part: Any, where: Any) -> str:
    place = tuple(str(step) for step in part["loc"])
    if part["type"] == "extra_forbidden":
        fields = [field.alias or name for name, field in model.model_fields.items()]
        return f"{where(place)}: unknown key; {did_you_mean(place[-1], fields)}"
    if part["type"] == "missing":
        return f"{where(place)}: missing; add it"
    message = part["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return f"{where(place)}: {message[:1].lower()}{message[1:]}"


def did_you_mean(name: str, known: list[str]) -> str:
    """The fix for an unknown name: the nearest known one, or all of them."""
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"use one of {', '.join(sorted(known))}" if known else "it takes none; remove it"
