"""What a tool takes: one declaration gives the schema and reads what models really send."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memsheaf.stack import UsageError

__all__ = ["BadArguments", "Parameter", "decode", "read", "schema"]

ParameterType = Literal["text", "texts", "number", "integer", "boolean", "object"]

_MAX_CHARACTERS = 400_000
_MAX_DEPTH = 8
_MAX_KEYS = 256
_MAX_TEXTS = 50
_JSON_TYPES = {
    "text": "string",
    "texts": "array",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "object": "object",
}
_TRUE, _FALSE = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})


class BadArguments(UsageError):
    """The arguments of a tool call cannot be used.

    Attributes:
        field: The parameter at fault, or None where it is the whole.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool.

    Args:
        name: Its name.
        type: `text`, `texts` (a list of text), `number`, `integer`, `boolean` or `object`.
        description: What the model is told.
        required: Whether it may be left out, or null.
        aliases: Other names under which models send it.
        choices: The values to offer; others are the tool's to judge.
        default: The value where it is left out; a list or an object for those types.
        lowest: Numbers below are raised to it.
        highest: Numbers above are lowered to it.
        offered: Whether it stands in the schema; one that does not is read all the same.
    """

    name: str
    type: ParameterType
    description: str = ""
    required: bool = False
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    default: Any = None
    lowest: float | None = None
    highest: float | None = None
    offered: bool = True


def schema(parameters: Sequence[Parameter], *, strict: bool) -> dict[str, Any]:
    """The JSON Schema of the arguments.

    Args:
        parameters: The parameters.
        strict: Whether every property is required and an optional one nullable, as OpenAI's
            strict mode demands.
    """
    offered = [p for p in parameters if p.offered]
    return {
        "type": "object",
        "properties": {p.name: _property(p, nullable=strict and not p.required) for p in offered},
        "required": [p.name for p in offered if strict or p.required],
        "additionalProperties": False,
    }


def _property(parameter: Parameter, *, nullable: bool) -> dict[str, Any]:
    kind = _JSON_TYPES[parameter.type]
    made: dict[str, Any] = {"type": [kind, "null"] if nullable else kind}
    if parameter.type == "texts":
        made["items"] = {"type": "string"}
        if parameter.choices:
            made["items"]["enum"] = list(parameter.choices)
    elif parameter.choices:
        made["enum"] = [*parameter.choices, None] if nullable else list(parameter.choices)
    made["description"] = parameter.description
    return made


def decode(arguments: object) -> dict[str, Any]:
    """The arguments of a call as an object, within bounds.

    Args:
        arguments: A mapping, JSON text, or None.

    Raises:
        BadArguments: They are no JSON object, or too large or too deep.
    """
    for _ in range(2):  # some models encode the JSON text as JSON once more
        if isinstance(arguments, str | bytes):
            arguments = _decoded(arguments)
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise BadArguments("the arguments must be one JSON object")
    if sum(1 for _ in _keys(arguments, 1)) > _MAX_KEYS:
        raise BadArguments(f"the arguments hold more than {_MAX_KEYS} values")
    return {str(name): value for name, value in arguments.items()}


def _decoded(text: str | bytes) -> object:
    if len(text) > _MAX_CHARACTERS:
        raise BadArguments(f"the arguments are longer than {_MAX_CHARACTERS} characters")
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        raise BadArguments("the arguments are not JSON; send one JSON object") from None


def _keys(value: object, depth: int) -> Iterator[object]:
    if depth > _MAX_DEPTH:
        raise BadArguments(f"the arguments are nested deeper than {_MAX_DEPTH}")
    inner: Sequence[object] = ()
    if isinstance(value, Mapping):
        inner = list(value.values())
    elif isinstance(value, list | tuple):
        inner = value
    for one in inner:
        yield one
        yield from _keys(one, depth + 1)


def read(
    parameters: Sequence[Parameter], arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The values of the parameters, and notes on what was changed or not used.

    Null is the same as left out. Numbers and booleans may come as text; a list as a JSON list, or
    as text with commas; an object as JSON text. Text is never taken apart, whatever it looks like.

    Raises:
        BadArguments: One is missing or cannot be read.
    """
    values: dict[str, Any] = {}
    notes: list[str] = []
    used: set[str] = set()
    for parameter in parameters:
        names = [n for n in (parameter.name, *parameter.aliases) if arguments.get(n) is not None]
        used.update((parameter.name, *parameter.aliases))
        if not names or (parameter.required and _is_blank(arguments[names[0]])):
            if parameter.required:
                raise BadArguments(f"{parameter.name} is required", parameter.name)
            values[parameter.name] = parameter.default
            continue
        values[parameter.name] = _value(parameter, arguments[names[0]], notes)
    unused = sorted(set(arguments) - used)
    if unused:
        shown = ", ".join(name[:40] for name in unused[:10])
        notes.append(f"not used: {shown}")
    return values, notes


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()


def _value(parameter: Parameter, value: object, notes: list[str]) -> Any:
    name = parameter.name
    match parameter.type:
        case "text":
            return _text(name, value)
        case "texts":
            return _texts(name, value)
        case "boolean":
            return _boolean(name, value)
        case "object":
            return _object(name, value)
        case "number" | "integer":
            return _bounded(parameter, _number(name, value), notes)


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise BadArguments(f"{name} must be text", name)


def _texts(name: str, value: object) -> list[str]:
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise BadArguments(f"{name} looks like a list but is not JSON", name) from None
        else:
            value = [part for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        raise BadArguments(f"{name} must be a list of texts", name)
    if len(value) > _MAX_TEXTS:
        raise BadArguments(f"{name} holds more than {_MAX_TEXTS} entries", name)
    return [text for one in value if (text := _text(name, one).strip())]


def _boolean(name: str, value: object) -> bool:
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise BadArguments(f"{name} must be true or false", name)


def _object(name: str, value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError):
            raise BadArguments(f"{name} must be a JSON object", name) from None
    if not isinstance(value, Mapping):
        raise BadArguments(f"{name} must be a JSON object", name)
    return dict(value)


def _number(name: str, value: object) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise BadArguments(f"{name} must be a number", name)
    return number


def _bounded(parameter: Parameter, number: float, notes: list[str]) -> float | int:
    whole = parameter.type == "integer"
    if whole and number <= 0 and parameter.default is not None:
        notes.append(f"{parameter.name} {number:g} is not above 0; {parameter.default} was used")
        number = float(parameter.default)
    low = -math.inf if parameter.lowest is None else parameter.lowest
    high = math.inf if parameter.highest is None else parameter.highest
    kept = min(max(number, low), high)
    if kept != number:
        word = "raised" if kept > number else "lowered"
        notes.append(f"{parameter.name} {number:g} was {word} to {kept:g}")
    return int(kept) if whole else kept
