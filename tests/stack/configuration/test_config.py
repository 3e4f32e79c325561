import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memsheaf.stack import ConfigError, MemoryStack, ProviderUnavailable, Scope, UsageError
from memsheaf.stack.config import Config, load_config
from memsheaf.stack.config_mounts import mounts
from memsheaf.stack.config_sources import Document, read_document
from memsheaf.stack.mount import Down
from memsheaf.stack.trust import TrustStore

pytestmark = pytest.mark.usefixtures("own")


@pytest.fixture
def load(project: Path) -> Callable[..., Config]:
    def loaded(text: str, name: str = "memsheaf.toml", **overrides: object) -> Config:
        (project / name).write_text(text, encoding="utf-8")
        return load_config(project, overrides)

    return loaded


Load = Callable[..., Config]


def origin(config: Config, key: str) -> tuple[object, str]:
    return next((s.value, s.origin) for s in config.settings if s.key == key)


def document(path: Path) -> Document:
    read = read_document(path)
    assert read is not None
    return read


def test_with_nothing_one_local_provider_in_the_users_folder(project: Path, home: Path) -> None:
    config = load_config(project)
    assert [(p.name, p.placement.type) for p in config.providers] == [("local", "local")]
    assert config.providers[0].folder == home / "data" / "local"
    assert config.scope is None
    assert config.workspace is None
    assert not (home / "data").exists()


def test_a_data_folder_above_makes_a_workspace(project: Path) -> None:
    (project / ".memsheaf").mkdir(mode=0o755)
    below = project / "a" / "b"
    below.mkdir(parents=True)
    config = load_config(below)
    assert config.providers[0].folder == project / ".memsheaf" / "local"
    assert not isinstance(mounts(config)[0].provider, Down)
    assert (project / ".memsheaf").stat().st_mode & 0o777 == 0o700
    assert (project / ".memsheaf" / ".gitignore").read_text() == "*\n"


def test_argument_beats_variable_beats_project_beats_user(
    load: Load, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "memsheaf.toml").write_text("[stack]\nworkers = 2\noverfetch = 7\nsearch_limit = 1\n")
    text = "[stack]\nsearch_limit = 2\nread_timeout = 5\nworkers = 3"
    config = load(text)
    assert (config.stack.search_limit, config.stack.workers, config.stack.overfetch) == (2, 3, 7)
    monkeypatch.setenv("MEMSHEAF_STACK_SEARCH_LIMIT", "4")
    assert load(text).stack.search_limit == 4
    config = load(text, search_limit=6)
    assert origin(config, "stack.search_limit") == (6, "argument search_limit")
    assert origin(config, "stack.read_timeout")[1].endswith("project/memsheaf.toml:3")
    assert origin(config, "stack.overfetch")[1].endswith("home/memsheaf.toml:3")
    assert origin(config, "stack.write_timeout") == (10.0, "default")


def test_pyproject_counts_and_names_its_keys_whole(load: Load) -> None:
    config = load("[tool.memsheaf.scope]\nuser_id = 'mira'\n", "pyproject.toml")
    assert config.scope == Scope(user_id="mira")
    with pytest.raises(ConfigError, match=r"pyproject\.toml:2: tool\.memsheaf\.scope\.usr_id"):
        load("[tool.memsheaf.scope]\nusr_id = 'mira'\n", "pyproject.toml")


def test_a_pyproject_of_others_never_stops_us(load: Load) -> None:
    assert load("# memsheaf\nnot toml", "pyproject.toml").workspace is None
    with pytest.raises(ConfigError, match="not valid TOML"):
        load("[tool.memsheaf]\nnot toml", "pyproject.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[stack]\noverfech = 3", r"toml:2: stack\.overfech: unknown key; did you mean 'o"),
        ("[stack]\n\nsearch_limit = 'x'", r"toml:3: stack\.search_limit: .*integer"),
        ("[stack]\nread_timeout = nan", r"stack\.read_timeout: .*(finite|greater than)"),
        ("[stac]\nx = 1", r"toml:1: stac: unknown table or key; did you mean 'stack'"),
        ("stack = 3", r"must be a table, \[stack\]"),
        ("[stack\n", r"memsheaf\.toml: not valid TOML: .*line 1"),
        ("[[providers]]\ntype = 'locl'", r"toml:2: providers\[0\]\.type: .*mean 'local'"),
        ("[[providers]]\nname = 'x'", r"providers\[0\]\.type: missing"),
        ("[[providers]]\ntype='local'\n[[providers]]\ntype='local'", r"toml:3: .*\[1\].*this name"),
        ("[[providers]]\ntype='local'\nsiez = 3", r"toml:3: providers\[0\]\.siez: .*mean 'size'"),
        ("[[providers]]\ntype='local'\nsize = 'big'", r"providers\[0\]\.size: .*integer"),
        ("[[providers]]\ntype='local'\nname='a/x'", r"providers\[0\]\.name: must be 1 to 64"),
        ("[[providers]]\ntype='local'\nmode='rw'", r"providers\[0\]\.mode: .*read-write"),
        ("[[providers]]\ntype='local'\nweight=0", r"providers\[0\]\.weight: .*greater than 0"),
        ("[providers]\ntype='local'", r"must be an array of tables, \[\[providers\]\]"),
        ("[scope]\nuser_id = ' '", r"scope.*white space"),
        ("a = " + "[" * 5000, "nested too deeply|not valid TOML"),
    ],
)
def test_errors_name_file_line_key_and_fix(load: Load, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(text)


def test_wrong_variables_arguments_and_files(
    load: Load, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"argument overfech: unknown.*overfetch"):
        load("", overfech=3)
    with monkeypatch.context() as patch:
        patch.setenv("MEMSHEAF_STACK_WORKERS", "many")
        with pytest.raises(ConfigError, match=r"variable MEMSHEAF_STACK_WORKERS: .*integer"):
            load("")
    with monkeypatch.context() as patch:
        patch.setenv("MEMSHEAF_DISABLED", "perhaps")
        with pytest.raises(ConfigError, match="MEMSHEAF_DISABLED: must be 1 or 0"):
            load("")
    (project / "memsheaf.toml").write_bytes("[stack]".encode("utf-16"))
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(project)


def test_a_value_is_never_in_an_error(load: Load) -> None:
    with pytest.raises(ConfigError) as caught:
        load("[[providers]]\ntype='local'\nsize = 'hunter2-secret'")
    assert "hunter2" not in str(caught.value)


def test_disabled_mounts_nothing(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSHEAF_DISABLED", "1")
    config = load("")
    assert config.disabled
    assert mounts(config) == []


def test_references_read_the_environment_in_the_users_file(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "memsheaf.toml"
    file.write_text("[[providers]]\ntype='local'\napi_key='${K_NAME}'\n[scope]\nuser_id='$${me}'")
    with pytest.raises(ConfigError, match=r"toml:3: providers\[0\]\.api_key: .*'K_NAME' is not"):
        load_config(project)
    monkeypatch.setenv("K_NAME", "s3cret-value")
    config = load_config(project)
    assert getattr(config.providers[0].options, "api_key", None) == "s3cret-value"
    assert config.scope == Scope(user_id="${me}")
    assert "s3cret" not in repr(config)
    assert origin(config, "providers.local.api_key")[0] == "***"


def test_a_failing_provider_is_down_without_its_secret_and_opens_again(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K_NAME", "s3cret-value")
    (home / "memsheaf.toml").write_text(
        "[[providers]]\ntype='local'\nname='a'\nfail=true\napi_key='${K_NAME}'\nmode='read'\n"
        "[[providers]]\ntype='local'\nname='b'\nweight=2\ntimeout=1.5\nscope={user_id='mira'}\n"
        "[[providers]]\ntype='local'\nname='off'\nenabled=false\n"
    )
    first, second = mounts(load_config(project))
    assert isinstance(first.provider, Down)
    assert first.provider.reason == "OSError: refused with ***"
    assert (first.name, first.mode) == ("a", "read")
    assert first.provider.reopen is not None
    with pytest.raises(OSError, match="refused"):
        first.provider.reopen()
    assert not isinstance(second.provider, Down)
    assert (second.weight, second.timeout, second.scope) == (2, 1.5, Scope(user_id="mira"))


def test_a_broken_plugin_is_down_and_the_rest_opens(
    load: Load, install: Callable[..., str], home: Path
) -> None:
    install("bad-one", "import nothing_of_that_name", "bad = {module}:F")
    (home / "memsheaf.toml").write_text("[[providers]]\ntype='bad'\n[[providers]]\ntype='local'")
    bad, good = mounts(load_config(home))
    assert isinstance(bad.provider, Down)
    assert "nothing_of_that_name" in bad.provider.reason
    assert not isinstance(good.provider, Down)


def test_a_data_folder_that_is_a_file_is_down_not_an_error(project: Path, home: Path) -> None:
    (home / "data").write_text("x")
    (mount,) = mounts(load_config(project))
    assert isinstance(mount.provider, Down)
    assert (home / "data").read_text() == "x"


def test_secrets_are_masked_by_name_and_in_addresses(project: Path, home: Path) -> None:
    (home / "memsheaf.toml").write_text(
        "[[providers]]\ntype='local'\napi_key='abc'\npath='http://me:pw@host/x?token=t1&a=1'\n"
    )
    config = load_config(project)
    assert origin(config, "providers.local.api_key")[0] == "***"
    assert origin(config, "providers.local.path")[0] == "http://***@host/x?token=***&a=1"


@pytest.mark.parametrize(
    "lines",
    [
        "[[providers]]\ntype='third'",
        "[[providers]]\ntype='wire'",
        "[[providers]]\ntype='local'\npath='../elsewhere'",
        "[[providers]]\ntype='local'\npath='/etc'",
        "[[providers]]\ntype='local'\npath='~/x'",
        "[[providers]]\ntype='local'\npath='out/x'",
        "[[providers]]\ntype='local'\napi_key='${HOME}'",
        "[scope]\nuser_id='${HOME}'",
    ],
)
def test_a_projects_file_is_hostile_until_trusted(
    load: Load, install: Callable[..., str], project: Path, home: Path, lines: str
) -> None:
    module = install("third-party", "class P: pass", "third = {module}:P")
    (project / "out").symlink_to("/tmp")
    config = load("[stack]\nworkers = 9\n" + lines)
    assert [p.placement.type for p in config.providers] == ["local"]
    assert config.stack.workers == 4
    (warning,) = config.warnings
    assert f"memsheaf trust {project / 'memsheaf.toml'}" in warning
    assert module not in sys.modules
    store = TrustStore(home)
    store.trust(document(project / "memsheaf.toml"))
    assert store.path.stat().st_mode & 0o777 == 0o600
    config = load_config(project)
    assert (config.warnings, config.stack.workers) == ((), 9)
    config = load("[stack]\nworkers = 8\n" + lines)
    assert config.warnings
    assert store.revoke(project / "memsheaf.toml")
    assert not store.revoke(project / "memsheaf.toml")


def test_a_harmless_projects_file_needs_no_trust(load: Load, project: Path) -> None:
    config = load("[[providers]]\ntype='local'\npath='data/store'\napi_key='$${x}'")
    assert config.warnings == ()
    assert getattr(config.providers[0].options, "path", None) == project / "data" / "store"


def test_the_projects_providers_replace_the_users_as_a_whole(load: Load, home: Path) -> None:
    (home / "memsheaf.toml").write_text("[[providers]]\ntype='wire'\nname='mine'\napi_key='k'")
    assert [p.name for p in load("[stack]").providers] == ["mine"]
    config = load("[[providers]]\ntype='local'\nname='theirs'")
    assert [p.name for p in config.providers] == ["theirs"]


def test_a_data_folder_that_links_out_is_refused(project: Path, home: Path, tmp_path: Path) -> None:
    target = tmp_path / "victim"
    target.mkdir()
    (project / ".memsheaf").symlink_to(target)
    config = load_config(project)
    assert config.providers[0].folder == home / "data" / "local"
    assert "link out of the workspace" in config.warnings[0]
    (project / ".memsheaf").unlink()
    (project / ".memsheaf").mkdir()
    (project / ".memsheaf" / "local").symlink_to(target)
    (mount,) = mounts(load_config(project))
    assert isinstance(mount.provider, Down)
    assert "is a link out of" in mount.provider.reason


def test_a_data_folder_of_another_user_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".memsheaf").mkdir()
    uid = (project / ".memsheaf").stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: uid + 1)
    if uid == 0:
        monkeypatch.setattr("memsheaf.stack.config.is_mine", lambda path: False)
    config = load_config(project)
    assert config.workspace is None
    assert "belongs to another user" in config.warnings[0]


def test_a_pipe_named_like_the_file_does_not_block(project: Path) -> None:
    os.mkfifo(project / "memsheaf.toml")
    assert load_config(project).workspace is None


def test_two_commands_at_once_lose_no_trust(project: Path, home: Path) -> None:
    paths = [project / f"{number}.toml" for number in range(12)]
    for path in paths:
        path.write_text("[stack]\n")
    threads = [
        threading.Thread(target=TrustStore(home).trust, args=(document(path),)) for path in paths
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(TrustStore(home).trusts(document(path)) for path in paths)


def test_a_link_below_a_provider_s_folder_is_refused(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.db"
    (project / ".memsheaf" / "local" / "deep").mkdir(parents=True)
    (project / ".memsheaf" / "local" / "deep" / "cache.db").symlink_to(outside)
    (mount,) = mounts(load_config(project))
    assert isinstance(mount.provider, Down)
    assert "is a link out of" in mount.provider.reason
    assert not outside.exists()


def test_the_stack_s_own_folder_may_not_lead_out(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / ".memsheaf").mkdir()
    (project / ".memsheaf" / "stack").symlink_to(outside)
    with pytest.raises(ProviderUnavailable, match="link out of"):
        MemoryStack.from_config(project)


@pytest.mark.parametrize("name", ["sessions", "stack", "Stack"])
def test_a_provider_may_not_take_a_folder_of_memsheaf_s_own(project: Path, name: str) -> None:
    file = project / "memsheaf.toml"
    file.write_text(f'[[providers]]\nname = "{name}"\ntype = "local"\n')
    with pytest.raises(ConfigError, match=r"toml:2: providers\[0\].name: .*choose another"):
        load_config(project)


def test_a_folder_in_place_of_the_file_is_no_file(project: Path) -> None:
    (project / "memsheaf.toml").mkdir()
    assert load_config(project).files == ()


def test_a_stack_is_made_of_a_configuration_that_was_read(project: Path) -> None:
    with MemoryStack.from_config(load_config(project, {"search_limit": 3})) as stack:
        assert stack.settings.search_limit == 3
    with pytest.raises(UsageError, match="load_config"):
        MemoryStack.from_config(load_config(project), search_limit=3)


def test_where_nothing_is_configured_little_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from memsheaf.stack.config_sources import find_workspace, user_data_folder\n"
        "here = Path(sys.argv[1])\n"
        "assert user_data_folder({'MEMSHEAF_HOME': sys.argv[1]}) == here / 'data'\n"
        "assert find_workspace(here) is None\n"
        "print(sorted({'hashlib', 'platformdirs', 'tomllib'} & sys.modules.keys()))"
    )
    words = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
