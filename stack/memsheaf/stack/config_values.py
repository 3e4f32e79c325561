"""Values of a configuration: references to the environment, and what must not be shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import ConfigError

__all__ = ["MASK", "Secrets", "Setting", "expand", "flatten", "masked", "references", "scrubbed"]

MASK = "***"
_REFERENCE = re.compile(r"(\$?)\$\{([^}]*)\}")
_SECRET_KEY = re.compile(r"key|token|secret|password|passwd|credential", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^/?#\s]*@")
_SECRET_PARAMETER = re.compile(
    r"([?&;][^=&;\s]*(?:key|token|secret|password)[^=&;\s]*=)[^&;\s]*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One effective value and where it comes from.

    Attributes:
        key: Its dotted name.
        value: The value, fit to be shown: secrets are masked.
        origin: A file, an environment variable, ``argument`` or ``default``.
    """

    key: str
    value: object
    origin: str


@dataclass(slots=True)
class Secrets:
    """What came from the environment: the keys it went to, and the texts themselves."""

    keys: set[tuple[str, ...]] = field(default_factory=set)
    texts: set[str] = field(default_factory=set, repr=False)


def references(value: object) -> bool:
    """Whether a value, or anything in it, refers to the environment by ``${NAME}``."""
    return any(
        isinstance(leaf, str) and any(m[1] == "" for m in _REFERENCE.finditer(leaf))
        for _, leaf in flatten(value)
    )


def expand(
    value: Any,
    environ: Mapping[str, str],
    where: Callable[[tuple[str, ...]], str],
    secrets: Secrets,
    key: tuple[str, ...] = (),
) -> Any:
    """Replace every ``${NAME}`` by the environment's value; ``$${`` stands for ``${``.

    Raises:
        ConfigError: A variable is not set; names file, key and variable.
    """
    if isinstance(value, dict):
        return {k: expand(v, environ, where, secrets, (*key, k)) for k, v in value.items()}
    if isinstance(value, list):
        return [
            expand(v, environ, where, secrets, (*key, str(place))) for place, v in enumerate(value)
        ]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]
        if match[2] not in environ:
            raise ConfigError(
                f"{where(key)}: the environment variable {match[2]!r} is not set; "
                "set it, or write $${ for a literal ${"
            )
        secrets.keys.add(key)
        if len(environ[match[2]]) >= 4:  # a shorter one would blank out ordinary words
            secrets.texts.add(environ[match[2]])
        return environ[match[2]]

    return _REFERENCE.sub(replaced, value)


def flatten(value: object, key: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """The leaves of nested tables and lists, with their paths."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from flatten(item, (*key, str(name)))
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from flatten(item, (*key, str(place)))
    else:
        yield key, value


def masked(key: tuple[str, ...], value: object, secrets: Secrets) -> object:
    """A value fit to be shown."""
    if value is None or isinstance(value, bool):
        return value
    if any(_SECRET_KEY.search(step) for step in key) or key in secrets.keys:
        return MASK
    return scrubbed(value, secrets) if isinstance(value, str) else value


def scrubbed(text: str, secrets: Secrets) -> str:
    """A text without credentials: in an address, in its parameters, or from the environment."""
    for secret in sorted(secrets.texts, key=len, reverse=True):
        text = text.replace(secret, MASK)
    text = _USERINFO.sub(f"{MASK}@", text)
    return _SECRET_PARAMETER.sub(rf"\1{MASK}", text)
