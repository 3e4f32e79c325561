"""The configuration: every value with its origin, from arguments, environment, files, defaults."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from .config_models import ModelSettings, read_models
from .config_providers import ProviderSettings, doubts, read_providers
from .config_settings import ScopeSettings, did_you_mean, validated
from .config_sources import (
    DATA_FOLDER,
    FILE_NAME,
    Document,
    find_workspace,
    is_mine,
    read_document,
    user_config_folder,
    user_data_folder,
)
from .config_values import Secrets, Setting, expand, masked
from .errors import ConfigError
from .registry import Registry
from .scope import Scope
from .settings import StackSettings
from .trust import TrustStore

__all__ = ["Config", "load_config"]

logger = logging.getLogger(__name__)

SECTIONS: Mapping[str, type[BaseModel]] = {"stack": StackSettings, "scope": ScopeSettings}
DEFAULT_PROVIDERS: list[dict[str, Any]] = [{"name": "local", "type": "local"}]
DISABLED = "MEMSHEAF_DISABLED"


@dataclass(frozen=True, slots=True)
class Config:
    """An effective configuration.

    Attributes:
        stack: Limits, deadlines, fusion.
        scope: The default scope, or None.
        providers: In order; the first that reads and writes is the authority.
        models: Chat models by name, see `MODEL_NAMES`.
        disabled: Whether ``MEMSHEAF_DISABLED`` turns everything off.
        data: The folder under which each provider has its own, and the stack its state.
        workspace: The folder of the project, or None.
        files: The files that count, the strongest first.
        warnings: What was ignored, why, and the command that changes it.
        settings: Every value, fit to be shown, with its origin.
    """

    stack: StackSettings
    scope: Scope | None
    providers: tuple[ProviderSettings, ...]
    data: Path
    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    disabled: bool = False
    workspace: Path | None = None
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    secrets: Secrets = field(default_factory=Secrets, repr=False)


def load_config(
    start: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    registry: Registry | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read the effective configuration; creates nothing on disk.

    Args:
        start: Where the search for a project's file begins; the working directory by default.
        overrides: Settings of ``[stack]`` by name, and ``scope``, a `Scope` or its fields.
        registry: The providers; those installed by default.
        environ: The environment; the process's by default.

    Raises:
        ConfigError: A file, variable or argument is wrong; names the place and the fix.
    """
    environ = os.environ if environ is None else environ
    registry = registry or Registry("memsheaf.providers")
    own_folder = user_config_folder(environ)
    found = find_workspace(start or Path.cwd())
    workspace, project = found or (None, None)
    warnings: list[str] = []
    if project is not None and workspace is not None:
        reasons = doubts(project, workspace, registry)
        if reasons and not TrustStore(own_folder).trusts(project):
            warnings.append(
                f"{project.path} is ignored: {'; '.join(reasons)}. "
                f"Look at it, then run: memsheaf trust {project.path}"
            )
            project = None
    if workspace is not None and (refused := _refused_folder(workspace)):
        warnings.append(refused)
        workspace = None
    documents = [d for d in (project, read_document(own_folder / FILE_NAME)) if d is not None]
    for document in documents:
        _check_keys(document)
    gathered = _Gathered(documents, environ, dict(overrides or {}), Secrets())
    stack = gathered.section("stack")
    scope = gathered.section("scope")
    assert isinstance(stack, StackSettings)
    if gathered.overrides:
        name = next(iter(gathered.overrides))
        known = [*StackSettings.model_fields, "scope"]
        raise ConfigError(f"argument {name}: unknown setting; {did_you_mean(name, known)}")
    data = workspace / DATA_FOLDER if workspace is not None else user_data_folder(environ)
    source = next((d for d in documents if "providers" in d.data), None)
    if source is not None and source is not project:
        data = user_data_folder(environ)  # the user's own providers span projects
    providers, shown = read_providers(
        source, DEFAULT_PROVIDERS, data, registry, environ, gathered.secrets
    )
    models, shown_models = read_models(documents, environ, gathered.secrets)
    fields = scope.model_dump(exclude_none=True)
    for warning in warnings:
        logger.warning("%s", warning)
    return Config(
        stack=stack,
        scope=Scope(**fields) if any(fields.values()) else None,
        providers=providers,
        data=data,
        models=models,
        disabled=_flag(DISABLED, environ),
        workspace=workspace,
        files=tuple(document.path for document in documents),
        warnings=tuple(warnings),
        settings=(*gathered.shown, *shown, *shown_models),
        secrets=gathered.secrets,
    )


@dataclass(slots=True)
class _Gathered:
    """Sections by key: an argument beats a variable beats a file beats the default."""

    documents: list[Document]
    environ: Mapping[str, str]
    overrides: dict[str, Any]
    secrets: Secrets
    shown: list[Setting] = field(default_factory=list)

    def section(self, name: str) -> BaseModel:
        model = SECTIONS[name]
        values: dict[str, Any] = {}
        places: dict[str, str] = {}
        origins: dict[str, str] = {}
        for document in reversed(self.documents):
            table = document.data.get(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{document.where((name,))}: must be a table, [{name}]")
            table = expand(table, self.environ, document.where, self.secrets, (name,))
            values.update(table)
            places.update({key: document.where((name, key)) for key in table})
            origins.update({key: document.at((name, key)) for key in table})
        prefix = f"MEMSHEAF_{name.upper()}_"
        variables = {
            variable.removeprefix(prefix).lower(): variable
            for variable in self.environ
            if variable.startswith(prefix)
        }
        values.update({key: self.environ[variable] for key, variable in variables.items()})
        named = {key: f"environment variable {v}" for key, v in variables.items()}
        given = self._arguments(name, model)
        values.update(given)
        named.update({key: f"argument {key}" for key in given})
        places.update(named)
        origins.update(named)
        made = validated(
            model, values, lambda key: places.get(key[0] if key else "", ".".join((name, *key)))
        )
        for key, value in made.model_dump(mode="json").items():
            shown = masked((name, key), value, self.secrets)
            self.shown.append(Setting(f"{name}.{key}", shown, origins.get(key, "default")))
        return made

    def _arguments(self, name: str, model: type[BaseModel]) -> dict[str, Any]:
        if name != "scope":
            known = self.overrides.keys() & model.model_fields.keys()
            return {key: self.overrides.pop(key) for key in known}
        scope = self.overrides.pop("scope", None)
        if isinstance(scope, Scope):
            # A given scope replaces the file's as a whole: half of each would be nobody's.
            return {key: getattr(scope, key) for key in model.model_fields}
        return dict(scope or {})


def _check_keys(document: Document) -> None:
    known = [*SECTIONS, "providers", "models"]
    for key in document.data:
        if key not in known:
            hint = did_you_mean(key, known)
            raise ConfigError(f"{document.where((key,))}: unknown table or key; {hint}")


def _refused_folder(workspace: Path) -> str | None:
    """Why the workspace's data folder is not used, or None."""
    folder = workspace / DATA_FOLDER
    if folder.is_symlink() and not folder.resolve().is_relative_to(workspace.resolve()):
        return f"{folder} is not used: it is a link out of the workspace; remove the link"
    if folder.exists() and not is_mine(folder):
        return f"{folder} is not used: it belongs to another user; take it over with chown"
    return None


def _flag(name: str, environ: Mapping[str, str]) -> bool:
    value = environ.get(name, "").strip().lower()
    if value in ("", "0", "false", "no", "off"):
        return False
    if value in ("1", "true", "yes", "on"):
        return True
    raise ConfigError(f"environment variable {name}: must be 1 or 0")
