"""The ``[models.NAME]`` tables of a configuration: which chat model does which job.

Only the validated values are made here; who makes clients of them lies above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from .config_settings import did_you_mean, validated
from .config_sources import Document
from .config_values import Secrets, Setting, expand, masked
from .errors import ConfigError

__all__ = ["MODEL_NAMES", "ModelSettings", "model_doubts", "read_models"]

MODEL_NAMES = ("user_model", "auxiliary", "primary")
"""The job that has a model of its own, the model of all side jobs, and the agent's own."""


class ModelSettings(BaseModel):
    """A ``[models.NAME]`` table.

    Attributes:
        type: The protocol that the server speaks.
        model: As the server names it.
        base_url: Where the server listens; that of the service where not given.
        api_key: Sent to that server only, and never shown.
        timeout: Seconds for one call.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    type: Literal["openai", "anthropic", "ollama"]
    model: Annotated[str, Field(min_length=1, max_length=200)]
    base_url: str | None = None
    api_key: SecretStr | None = None
    timeout: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 60.0

    @field_validator("base_url")
    @classmethod
    def _check_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)  # a ValueError of it is the validation's as well
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must start with http:// or https:// and name a host")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("must hold no user, query or fragment; use api_key")
        return value

    @field_validator("api_key")
    @classmethod
    def _check_key(cls, value: SecretStr | None) -> SecretStr | None:
        key = value.get_secret_value() if value else ""
        if value is not None and (not key or not key.isascii() or not key.isprintable()):
            raise ValueError("must be printable ASCII text; leave it out where there is none")
        if " " in key:
            raise ValueError("must hold no space")
        return value

    @model_validator(mode="after")
    def _check_server(self) -> ModelSettings:
        if self.type == "openai" and self.base_url is None:
            raise ValueError(
                'type "openai" needs base_url, the server\'s address with the version, '
                "for instance https://api.openai.com/v1"
            )
        return self


def model_doubts(document: Document) -> list[str]:
    """Why the models of a project's file count only once it is trusted."""
    return ["it names a chat model, which uses the network"] if document.data.get("models") else []


def read_models(
    documents: Sequence[Document], environ: Mapping[str, str], secrets: Secrets
) -> tuple[dict[str, ModelSettings], list[Setting]]:
    """Validate the models of all files.

    A model is one value: of two files that have it the strongest decides as a whole, so that no
    file sends the key of another one to its own server.

    Args:
        documents: The files that count, the strongest first.
        environ: For ``${NAME}``.
        secrets: Learns what came from the environment.

    Returns:
        The models by name, and their values, fit to be shown.

    Raises:
        ConfigError: A name or key is unknown, or a value is wrong.
    """
    made: dict[str, ModelSettings] = {}
    shown: list[Setting] = []
    for document in documents:
        for name, raw in _tables(document).items():
            if name in made:
                continue
            key = ("models", name)

            def where(
                inner: tuple[str, ...],
                key: tuple[str, ...] = key,
                document: Document = document,
            ) -> str:
                return document.where((*key, *inner))

            table = expand(raw, environ, document.where, secrets, key)
            made[name] = validated(ModelSettings, table, where)
            for field, value in table.items():
                text = masked((*key, field), value, secrets)
                shown.append(Setting(f"models.{name}.{field}", text, document.at((*key, field))))
    return made, shown


def _tables(document: Document) -> dict[str, dict[str, Any]]:
    tables = document.data.get("models", {})
    if not isinstance(tables, dict):
        raise ConfigError(f"{document.where(('models',))}: must hold tables, [models.NAME]")
    for name, table in tables.items():
        if name not in MODEL_NAMES:
            hint = did_you_mean(name, list(MODEL_NAMES))
            raise ConfigError(f"{document.where(('models', name))}: unknown model; {hint}")
        if not isinstance(table, dict):
            raise ConfigError(f"{document.where(('models', name))}: must be a table, [models.NAME]")
    return tables
