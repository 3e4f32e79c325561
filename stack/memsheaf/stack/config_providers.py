"""The ``[[providers]]`` of a configuration: read, doubted, validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from .config_models import model_doubts
from .config_settings import Placement, validated
from .config_sources import Document, is_mine
from .config_values import Secrets, Setting, expand, flatten, masked, references
from .errors import ConfigError, RegistrationError
from .registry import ProviderFactory, Registry, provider_factory

__all__ = ["ProviderSettings", "doubts", "read_providers"]


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """One configured provider.

    Attributes:
        placement: The keys that every type has.
        folder: Where it may keep files.
        factory: What builds it; None where its plugin is broken.
        options: Its validated options.
        broken: Why its plugin cannot be used, or None.
    """

    placement: Placement
    folder: Path
    factory: ProviderFactory | None = field(default=None, repr=False)
    options: BaseModel | None = field(default=None, repr=False)
    broken: str | None = None

    @property
    def name(self) -> str:
        """Its name in outcomes."""
        return self.placement.name or self.placement.type


def doubts(document: Document, workspace: Path, registry: Registry) -> list[str]:
    """Why a project's file counts only once it is trusted; empty where it may count at once.

    Nothing of a third-party plugin is imported to find out.
    """
    found: list[str] = []
    if not is_mine(document.path):
        found.append("it belongs to another user")
    if references(document.data):
        found.append("it reads the environment by ${...}")
    found += model_doubts(document)
    for place, table in enumerate(_tables(document)):
        kind = table.get("type")
        name = f"provider {place + 1}"
        if not isinstance(kind, str) or kind not in registry.plugins:
            continue  # wrong anyway, and told so by the validation
        plugin = registry.plugins[kind]
        if not plugin.ours:
            found.append(f"{name} has the type {kind!r} of {plugin.distribution}")
        elif _uses_network(registry, kind):
            found.append(f"{name} has the type {kind!r}, which uses the network")
        if any(_leaves(value, workspace) for _, value in flatten(table)):
            found.append(f"{name} names an address or a path outside of {workspace}")
    return found


def read_providers(
    document: Document | None,
    default: list[dict[str, Any]],
    data: Path,
    registry: Registry,
    environ: Mapping[str, str],
    secrets: Secrets,
) -> tuple[tuple[ProviderSettings, ...], list[Setting]]:
    """Validate the providers of one file, or the default ones.

    Args:
        document: The file that lists them; None for the default.
        default: The default tables.
        data: Under which each provider has a folder by its name.
        registry: The known types.
        environ: For ``${NAME}``.
        secrets: Learns what came from the environment.

    Raises:
        ConfigError: A key or value is wrong, a type unknown, a name used twice.
    """
    tables = default if document is None else _tables(document)
    made: list[ProviderSettings] = []
    shown: list[Setting] = []
    for place, raw in enumerate(tables):
        key = ("providers", str(place))

        def where(inner: tuple[str, ...], key: tuple[str, ...] = key) -> str:
            return document.where((*key, *inner)) if document else "default provider"

        def at(full: tuple[str, ...]) -> str:
            return document.where(full) if document else "default provider"

        table = expand(raw, environ, at, secrets, key)
        common = {name: v for name, v in table.items() if name in Placement.model_fields}
        options = {name: v for name, v in table.items() if name not in Placement.model_fields}
        placement = validated(Placement, common, where)
        made.append(_settings(placement, options, data, registry, where, document))
        if made[-1].name in [other.name for other in made[:-1]]:
            raise ConfigError(f"{where(('name',))}: another provider has this name; change one")
        for path, value in flatten(table):
            text = masked((*key, *path), value, secrets)
            origin = document.at((*key, *path)) if document else "default"
            shown.append(Setting(f"providers.{made[-1].name}.{'.'.join(path)}", text, origin))
    return tuple(made), shown


def _settings(
    placement: Placement,
    options: Mapping[str, Any],
    data: Path,
    registry: Registry,
    where: Any,
    document: Document | None,
) -> ProviderSettings:
    folder = data / (placement.name or placement.type)
    if placement.type not in registry.plugins and document is not None:
        try:
            registry.find(placement.type)
        except RegistrationError as error:
            raise ConfigError(f"{where(('type',))}: {error}") from error
    try:
        factory = provider_factory(registry.load(placement.type), placement.type)
    except RegistrationError as error:
        return ProviderSettings(placement, folder, broken=str(error))
    if not placement.enabled:
        return ProviderSettings(placement, folder, factory)
    checked = validated(factory.options, options, where)
    base = document.path.parent if document is not None else data
    return ProviderSettings(placement, folder, factory, _anchored(checked, base))


def _tables(document: Document) -> list[dict[str, Any]]:
    tables = document.data.get("providers", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(
            f"{document.where(('providers',))}: must be an array of tables, "
            f"[[{'.'.join((*document.prefix, 'providers'))}]]"
        )
    return tables


def _uses_network(registry: Registry, kind: str) -> bool:
    try:
        return provider_factory(registry.load(kind), kind).network
    except RegistrationError:
        return False  # it will not run either


def _leaves(value: object, workspace: Path) -> bool:
    """Whether a text, read as a path, leads out of the workspace; an address always does."""
    if not isinstance(value, str):
        return False
    if "://" in value or value.startswith(("~", "file:")):
        return True
    try:
        return not (workspace / value).resolve().is_relative_to(workspace.resolve())
    except (OSError, ValueError, RuntimeError):
        return True


def _anchored(options: BaseModel, base: Path) -> BaseModel:
    """Relative paths of options start at the file that holds them."""
    paths = {
        name: base / value.expanduser()
        for name in type(options).model_fields
        if isinstance(value := getattr(options, name), Path)
    }
    return options.model_copy(update=paths) if paths else options
