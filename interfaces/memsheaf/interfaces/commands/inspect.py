"""providers, doctor and config: what is there, whether it works, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from memsheaf.interfaces.common import FAILED, OK, json_option
from memsheaf.interfaces.probe import COUNT_LIMIT, Probe, probe
from memsheaf.interfaces.terminal import safe, say, say_json, table
from memsheaf.stack.config import Config, load_config
from memsheaf.stack.config_mounts import mounts
from memsheaf.stack.registry import GROUPS, Plugin, Registry

__all__ = ["COMMANDS"]


@click.command()
@json_option
def providers(as_json: bool) -> int:
    """List the configured providers with their health, then every installed plugin."""
    effective = load_config()
    types = {settings.name: settings.placement.type for settings in effective.providers}
    mounted = [
        {
            "name": seen.name,
            "type": types[seen.name],
            "mode": seen.mode,
            "health": seen.health,
            "ms": round(seen.check.elapsed * 1000, 1),
            "records": seen.records,
            "reason": seen.fault or " ".join(seen.check.notes),
        }
        for seen in _probes(effective, round_trip=False)
    ]
    plugins = [(group, plugin) for group in GROUPS for plugin in Registry(group).describe()]
    if as_json:
        say_json(
            {
                "disabled": effective.disabled,
                "providers": mounted,
                "plugins": [_plugin(group, plugin) for group, plugin in plugins],
            }
        )
        return OK
    if effective.disabled:
        say("MEMSHEAF_DISABLED is set: nothing is mounted")
    table([{**row, "records": _number(row["records"])} for row in mounted])
    say()
    table([_plugin(group, plugin) for group, plugin in plugins])
    return OK


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Take every provider through write, read and forget in a private scope; say what to do."""
    effective = load_config()
    types = {settings.name: settings.placement.type for settings in effective.providers}
    plugins = [plugin for group in GROUPS for plugin in Registry(group).describe()]
    broken = [plugin for plugin in plugins if plugin.status == "broken"]
    seen = list(_probes(effective, round_trip=True))
    advices = [None if each.fault is None else advice(each.fault) for each in seen]
    well = not any(advices) and not effective.disabled
    if as_json:
        say_json(
            {
                "healthy": well,
                "disabled": effective.disabled,
                "providers": [
                    {
                        "name": each.name,
                        "type": types[each.name],
                        "mode": each.mode,
                        "healthy": each.fault is None,
                        "steps": list(each.steps),
                        "fault": each.fault,
                        "advice": todo,
                        "records": each.records,
                        "ms": round(each.elapsed * 1000, 1),
                    }
                    for each, todo in zip(seen, advices, strict=True)
                ],
                "broken_plugins": [{"name": p.name, "reason": p.reason} for p in broken],
                "warnings": list(effective.warnings),
            }
        )
        return OK if well else FAILED
    if effective.disabled:
        say("MEMSHEAF_DISABLED is set, so nothing is remembered; unset it")
    for each, todo in zip(seen, advices, strict=True):
        title = safe(f"{each.name} ({types[each.name]}, {each.mode or 'not mounted'})")
        if todo is None:
            steps = ", ".join(each.steps)
            things = "record" if each.records == 1 else "records"
            held = "" if each.records is None else f", {_number(each.records)} {things}"
            say(f"ok      {title}: {steps} in {each.elapsed * 1000:.1f} ms{held}")
        else:
            say(f"FAILED  {title}: {safe(each.fault or '')}", bold=True)
            say(f"        {todo}")
    for plugin in broken:
        say(safe(f"broken  plugin {plugin.name} of {plugin.distribution}: {plugin.reason}"))
        say(f"        reinstall {safe(plugin.distribution)}, or uninstall it")
    for warning in effective.warnings:
        say(f"note    {safe(warning)}")
    return OK if well else FAILED


_ADVICE = (
    (("full or read-only",), "free some space on its disk, or make its folder writable for you"),
    (("permission", "read-only", "readonly"), "make its folder writable for you, or set its path"),
    (("full", "no space"), "free some space on its disk"),
    (
        ("not a directory", "a file", "file exists", "notadirectory"),
        "a file stands where its folder should be; move it, or set another path",
    ),
    (
        ("corrupt", "damaged", "malformed", "not a database", "does not fit"),
        "move its files away and restore a backup or an export; nothing was deleted",
    ),
    (("timed out", "busy", "locked"), "end the process that holds it, or raise its timeout"),
    (("pip install", "no module", "imported"), "install what is missing, or remove its table"),
    (("whole scope",), "leave one field of its pinned scope free, or accept that it is not tried"),
)


def advice(fault: str) -> str:
    """What to do about a fault."""
    text = fault.casefold()
    for signs, todo in _ADVICE:
        if any(sign in text for sign in signs):
            return todo
    return "see `memsheaf config` for its settings; enabled = false in its table leaves it out"


def _probes(config: Config, *, round_trip: bool) -> Iterator[Probe]:
    for mount in mounts(config):
        yield probe(mount, config.stack, round_trip=round_trip)


def _number(records: object) -> str:
    return "" if records is None else f"{records}{'+' if records == COUNT_LIMIT else ''}"


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


COMMANDS: dict[str, click.Command] = {
    "providers": providers,
    "doctor": doctor,
    "config": config,
}
