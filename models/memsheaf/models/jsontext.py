"""JSON out of what models really send: bare, fenced, or wrapped in prose."""

from __future__ import annotations

import json
import re
from typing import Any, Literal, NoReturn

from .errors import JsonNotFound

Json = dict[str, Any] | list[Any]
MAX_CHARS = 4_000_000
MAX_PLACES = 1_000
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n`~]*\n(.*?)^[ \t]*\1", re.DOTALL | re.MULTILINE)
_KINDS: dict[str | None, tuple[type[Json], ...]] = {
    "object": (dict,),
    "array": (list,),
    None: (dict, list),
}
# What may follow in JSON; the decoder need not be bothered with "{x}" or "{{{{".
_OPENING = re.compile(r"""\{\s*["}]|\[\s*[\[{"\]\-0-9tfn]""")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def extract_json(text: str, *, want: Literal["object", "array"] | None = None) -> Json:
    """The JSON object or array in a model's reply.

    The whole text is tried first, then fenced blocks, then the first object or array that stands
    anywhere in the text (the first `MAX_PLACES` that look like one are tried). Reasoning in a
    leading `<think>` block is not looked at. The work is bounded, whatever the text holds.

    Args:
        text: The reply.
        want: Take only an object, or only an array.

    Raises:
        JsonNotFound: There is none, or the text is longer than `MAX_CHARS` or nested too deeply.

    >>> extract_json('Sure! Here you are: {"note": "a } in a string"} Anything else?')
    {'note': 'a } in a string'}
    """
    if len(text) > MAX_CHARS:
        raise JsonNotFound(f"the reply is longer than {MAX_CHARS} characters; ask for less")
    kinds = _KINDS[want]
    text = _without_reasoning(text.strip().removeprefix("\ufeff"))
    try:
        return _search(text, kinds)
    except RecursionError as error:
        raise JsonNotFound("the JSON in the reply is nested too deeply") from error
    except _NothingFound:
        raise JsonNotFound(
            f"the reply holds no JSON {want or 'object or array'}; ask again for JSON only"
        ) from None


class _NothingFound(Exception):
    """The search ended."""


def _search(text: str, kinds: tuple[type[Json], ...]) -> Json:
    try:
        whole = json.loads(text, parse_constant=_no_constant)
    except ValueError:
        pass
    else:
        if isinstance(whole, kinds):
            return whole
        if not isinstance(whole, dict | list):
            raise _NothingFound
    budget = 16 * len(text) + 10_000
    for fence in _FENCE.finditer(text):
        block = fence[2].strip()
        if block[:1] in ("{", "["):
            try:
                value = json.loads(block, parse_constant=_no_constant)
            except ValueError:
                continue
            if isinstance(value, kinds):
                return value
    # A failed try costs up to the length of the text even where it fails at once: the decoder
    # counts the lines before its error. Hence a limit on the number, beside the one on the work.
    place = 0
    for _ in range(MAX_PLACES):
        opening = _OPENING.search(text, place)
        if opening is None or budget <= 0:
            break
        start = opening.start()
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            place, budget = start + 1, budget - (error.pos - start) - 1
        except ValueError:  # a constant that is not JSON, or a number too long to read
            place, budget = start + 1, budget - len(text)
        else:
            if isinstance(value, kinds):
                return value
            # An object inside an unwanted array may be the one that is wanted.
            place, budget = start + 1, budget - (end - start)
    raise _NothingFound


def _without_reasoning(text: str) -> str:
    if text.startswith("<think>") and (end := text.rfind("</think>")) >= 0:
        return text[end + len("</think>") :].strip()
    return text
