"""providers and config: what is there, and why."""

from __future__ import annotations

from typing import Any

import click

from memsheaf.interfaces.common import OK, json_option, outcome_json
from memsheaf.interfaces.terminal import safe, say, say_json, table
from memsheaf.stack.config import load_config
from memsheaf.stack.registry import GROUPS, Plugin, Registry

__all__ = ["COMMANDS"]


@click.command()
@json_option
def providers(as_json: bool) -> int:
    """List the configured providers with their health, then every installed plugin."""
    from memsheaf.stack import MemoryStack

    config = load_config()
    placed = {settings.name: settings.placement for settings in config.providers}
    with MemoryStack.from_config() as stack:
        checks = () if config.disabled else stack.check()
    mounted = [
        {
            "name": check.provider,
            "type": placed[check.provider].type,
            "mode": str(placed[check.provider].mode or "as it can"),
            "health": str(check.status),
            "ms": round(check.elapsed * 1000, 1),
            "reason": check.reason or " ".join(check.notes),
        }
        for check in checks
        if check.provider in placed
    ]
    plugins = [(group, plugin) for group in GROUPS for plugin in Registry(group).describe()]
    if as_json:
        say_json(
            {
                "disabled": config.disabled,
                "providers": mounted,
                "outcomes": [outcome_json(check) for check in checks],
                "plugins": [_plugin(group, plugin) for group, plugin in plugins],
            }
        )
    else:
        if config.disabled:
            say("MEMSHEAF_DISABLED is set: nothing is mounted")
        table(mounted)
        say()
        table([_plugin(group, plugin) for group, plugin in plugins])
    return OK


@click.command()
@json_option
def config(as_json: bool) -> int:
    """Show the effective configuration: each value and where it comes from, secrets masked."""
    effective = load_config()
    if as_json:
        say_json(
            {
                "settings": [
                    {"key": s.key, "value": s.value, "origin": s.origin} for s in effective.settings
                ],
                "files": [str(path) for path in effective.files],
                "workspace": str(effective.workspace) if effective.workspace else None,
                "disabled": effective.disabled,
                "warnings": list(effective.warnings),
            }
        )
        return OK
    table([_setting(s.key, s.value, s.origin) for s in effective.settings])
    for settings in effective.providers:
        say(safe(f"{settings.name} keeps its files in {settings.folder}"), dim=True)
        if settings.broken:
            say(safe(f"  ! {settings.broken}"), error=True)
    return OK


def _setting(key: str, value: object, origin: str) -> dict[str, Any]:
    shown = "" if value is None else str(value).lower() if isinstance(value, bool) else value
    return {"key": key, "value": shown, "origin": origin}


def _plugin(group: str, plugin: Plugin) -> dict[str, Any]:
    return {
        "plugin": plugin.name,
        "group": group,
        "distribution": plugin.distribution,
        "status": plugin.status,
        "reason": plugin.reason,
    }


COMMANDS: dict[str, click.Command] = {"providers": providers, "config": config}
