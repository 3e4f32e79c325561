"""The chat models of a configuration, as clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from memsheaf.stack import ConfigError
from memsheaf.stack.config import Config
from memsheaf.stack.config_models import ModelSettings

if TYPE_CHECKING:
    from memsheaf.models import AnthropicMessages, ModelChain, Ollama, OpenAICompatible

__all__ = ["opened_models"]

_AUXILIARY, _PRIMARY = "auxiliary", "primary"


@contextmanager
def opened_models(config: Config, slot: str) -> Iterator[ModelChain]:
    """The chain of a side job: its own model, then the auxiliary, then the primary one.

    Args:
        config: The configuration.
        slot: The job, for instance `user_model`.

    Raises:
        ConfigError: No model is configured, or a client cannot be made.
    """
    wanted = [name for name in (slot, _AUXILIARY, _PRIMARY) if name in config.models]
    if not wanted:
        raise ConfigError(
            f"no chat model is configured; add [models.{slot}] with type, model and base_url to "
            "memsheaf.toml, see docs/configuration.md"
        )
    from memsheaf.models import ModelError, resolve

    with ExitStack() as open_clients:
        made = {}
        for name in wanted:
            try:
                made[name] = open_clients.enter_context(_client(config.models[name]))
            except ModelError as error:
                raise ConfigError(f"models.{name}: {error}") from error
        own = {slot: made[slot]} if slot in made else None
        yield resolve(slot, slots=own, default=made.get(_AUXILIARY), primary=made.get(_PRIMARY))


def _client(settings: ModelSettings) -> OpenAICompatible | AnthropicMessages | Ollama:
    from memsheaf.models import AnthropicMessages, HttpSettings, Ollama, OpenAICompatible

    # What is left out is the client's own default.
    named: dict[str, Any] = {"settings": HttpSettings(timeout=settings.timeout)}
    if settings.base_url is not None:
        named["base_url"] = settings.base_url
    if settings.api_key is not None:
        named["api_key"] = settings.api_key.get_secret_value()
    clients = {"openai": OpenAICompatible, "anthropic": AnthropicMessages, "ollama": Ollama}
    client: OpenAICompatible | AnthropicMessages | Ollama
    client = clients[settings.type](model=settings.model, **named)
    return client
