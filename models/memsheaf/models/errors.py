"""The errors of this layer.

ModelError
├── BadRequest (ValueError)        the call itself is wrong; nothing was sent
├── MissingExtra (ImportError)     httpx or stamina is not installed
├── ModelTimeout (TimeoutError)    the deadline of the call passed
├── ModelCancelled                 a token was cancelled or the client closed
├── ModelUnavailable               no connection, 408, 409, 5xx, a reply that broke off
│   └── ModelBusy                  429, with the wait that the server asks for
├── ModelRefused                   any other status: key, model name, request
├── BadReply                       an answer that is not what the protocol says
│   └── JsonNotFound (ValueError)  a reply without the JSON that was asked for
├── AllModelsFailed                every model of a chain failed
└── NoModel (LookupError)          a slot, or a whole chain, without a model

A message names the model and the next step. It never holds a key, a prompt or a reply.
"""

from __future__ import annotations

from collections.abc import Sequence


class ModelError(Exception):
    """Base of everything that a chat model raises on purpose.

    Attributes:
        model: Label of the model, or "" where no model is involved.
    """

    def __init__(self, message: str, *, model: str = "") -> None:
        super().__init__(f"{model}: {message}" if model else message)
        self.model = model


class BadRequest(ModelError, ValueError):
    """The arguments of a call or a client are wrong; nothing was sent."""


class MissingExtra(ModelError, ImportError):
    """A library that only the extra ``memsheaf[models]`` installs is missing."""


class ModelTimeout(ModelError, TimeoutError):
    """The deadline of the call passed."""


class ModelCancelled(ModelError):
    """The call was cancelled by its token, or its client was closed."""


class ModelUnavailable(ModelError):
    """The server could not be reached, failed, or broke off; asking again may help."""


class ModelBusy(ModelUnavailable):
    """The server asks to wait (429).

    Attributes:
        retry_after: Seconds that the server asks to wait, or None.
    """

    def __init__(self, message: str, *, model: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, model=model)
        self.retry_after = retry_after


class ModelRefused(ModelError):
    """The server refused the request; asking again does not help.

    Attributes:
        status: The HTTP status.
    """

    def __init__(self, message: str, *, model: str = "", status: int) -> None:
        super().__init__(message, model=model)
        self.status = status


class BadReply(ModelError):
    """The answer is not what the protocol says."""


class JsonNotFound(BadReply, ValueError):
    """The text holds no JSON object or array."""


class NoModel(ModelError, LookupError):
    """No model is configured where one is needed."""


class AllModelsFailed(ModelError):
    """Every model of a chain failed.

    Attributes:
        failures: Each model's name with its error, in the order of the chain.
    """

    def __init__(self, failures: Sequence[tuple[str, ModelError]]) -> None:
        said = "; ".join(f"{name}: {_without_label(error)}" for name, error in failures)
        super().__init__(f"every model of the chain failed: {said}")
        self.failures = tuple(failures)


def _without_label(error: ModelError) -> str:
    return f"{type(error).__name__}: {str(error).removeprefix(f'{error.model}: ')}"
