import sys
from collections.abc import Callable
from typing import Any, Final

import pytest

from memsheaf.stack import RegistrationError
from memsheaf.stack.registry import ProviderContext, Registry, provider_factory

Install = Callable[..., str]
GROUP: Final = "memsheaf.providers"


def test_names_are_known_without_an_import(own: str) -> None:
    registry = Registry(GROUP)
    assert set(registry.plugins) == {"local", "wire"}
    assert registry.plugins["local"].status == "ready"
    assert own not in sys.modules
    registry.load("local")
    assert own in sys.modules
    assert [plugin.status for plugin in registry.describe()] == ["loaded", "loaded"]


def test_the_view_is_read_only(own: str) -> None:
    view: Any = Registry(GROUP).plugins
    with pytest.raises(TypeError):
        view["local"] = None


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import does_not_exist_at_all", "ModuleNotFoundError"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "AttributeError"),
    ],
)
def test_one_broken_plugin_is_listed_and_the_rest_work(
    own: str, install: Install, source: str, reason: str
) -> None:
    install("bad-plugin", source, "bad = {module}:FACTORY")
    registry = Registry(GROUP)
    listed = {plugin.name: plugin for plugin in registry.describe()}
    assert listed["bad"].status == "broken"
    assert reason in str(listed["bad"].reason)
    assert listed["bad"].distribution == "bad-plugin"
    assert listed["local"].status == "loaded"
    with pytest.raises(RegistrationError, match="bad"):
        registry.load("bad")


def test_a_line_that_is_no_entry_point_costs_only_itself(own: str, install: Install) -> None:
    install("odd-plugin", "", "odd = !!{module}")
    listed = {plugin.name: plugin.status for plugin in Registry(GROUP).describe()}
    assert listed == {"local": "loaded", "wire": "loaded", "odd": "broken"}


def test_unreadable_entry_points_cost_only_their_distribution(
    own: str, install: Install, tmp_path: Any
) -> None:
    install("garbled", "", "x = {module}:X")
    path = tmp_path / "site" / "garbled-1.0.dist-info" / "entry_points.txt"
    path.write_bytes(b"[memsheaf.providers]\n\xff\xfe = x\n")
    registry = Registry(GROUP)
    assert registry.plugins["garbled-1.0"].status == "broken"
    assert registry.load("local")


def test_a_name_declared_twice_is_refused_naming_both(own: str, install: Install) -> None:
    install("rival", "X = 1", "local = {module}:X")
    registry = Registry(GROUP)
    reason = str(registry.plugins["local"].reason)
    assert registry.plugins["local"].status == "broken"
    assert "memsheaf" in reason
    assert "rival" in reason
    with pytest.raises(RegistrationError, match="rival"):
        registry.load("local")


def test_the_variable_limits_loading(
    own: str, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = install("Third_Party.Plugin", "class P: pass", "third = {module}:P")
    monkeypatch.setenv("MEMSHEAF_PLUGINS", "")
    registry = Registry(GROUP)
    assert registry.plugins["third"].status == "blocked"
    with pytest.raises(RegistrationError, match="MEMSHEAF_PLUGINS"):
        registry.load("third")
    registry.describe()
    assert module not in sys.modules
    assert registry.load("local")
    monkeypatch.setenv("MEMSHEAF_PLUGINS", "other, third-party-plugin")
    assert Registry(GROUP).load("third")


def test_a_blocked_twin_does_not_break_the_allowed_one(
    own: str, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("rival", "X = 1", "local = {module}:X")
    monkeypatch.setenv("MEMSHEAF_PLUGINS", "")
    registry = Registry(GROUP)
    assert registry.load("local")
    assert [(p.distribution, p.status) for p in registry.describe() if p.name == "local"] == [
        ("memsheaf", "loaded"),
        ("rival", "blocked"),
    ]


def test_an_unknown_name_tells_the_nearest(own: str) -> None:
    with pytest.raises(RegistrationError, match="did you mean 'local'"):
        Registry(GROUP).load("locl")


def test_groups_are_apart(own: str, install: Install) -> None:
    install("emb", "E = 1", "hash = {module}:E", group="memsheaf.embedders")
    assert set(Registry("memsheaf.embedders").plugins) == {"hash"}
    assert "hash" not in Registry(GROUP).plugins


def test_a_plain_class_is_a_factory_without_options() -> None:
    factory = provider_factory(dict, "plain")
    assert factory.build(factory.options(), ProviderContext("plain", None, 1.0)) == {}
    with pytest.raises(RegistrationError, match="ProviderFactory"):
        provider_factory(3, "number")
