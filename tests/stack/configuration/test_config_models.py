"""`[models.NAME]`: what is validated, whose file counts, and that no key is shown."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from memsheaf.stack import ConfigError
from memsheaf.stack.config import Config, load_config
from memsheaf.stack.config_models import MODEL_NAMES, ModelSettings
from memsheaf.stack.config_sources import read_document
from memsheaf.stack.trust import TrustStore

pytestmark = pytest.mark.usefixtures("own")

SERVER = 'type = "openai"\nbase_url = "https://llm.example/v1"\nmodel = "small"\n'
Mine = Callable[[str], Config]


@pytest.fixture
def mine(project: Path, home: Path) -> Mine:
    def loaded(text: str) -> Config:
        home.mkdir(exist_ok=True)
        (home / "memsheaf.toml").write_text(text, encoding="utf-8")
        return load_config(project)

    return loaded


def test_a_model_of_the_users_own_file(mine: Mine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-very-secret")
    config = mine(f'[models.user_model]\n{SERVER}api_key = "${{SOME_KEY}}"\ntimeout = 5')
    model = config.models["user_model"]
    assert (model.type, model.model, model.timeout) == ("openai", "small", 5.0)
    assert model.api_key is not None
    assert model.api_key.get_secret_value() == "sk-very-secret"
    shown = {setting.key: setting.value for setting in config.settings}
    assert shown["models.user_model.api_key"] == "***"
    assert shown["models.user_model.base_url"] == "https://llm.example/v1"
    assert "very-secret" not in repr(config) + str(config.settings)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[models.usermodel]\ntype = "ollama"', r"toml:1: models.usermodel: .* 'user_model'"),
        ('[models.primary]\ntype = "olama"\nmodel = "x"', r":2: models.primary.type: .*'ollama'"),
        ('[models.primary]\ntype = "ollama"', r":1: models.primary.model: missing"),
        ('[models.primary]\ntype = "openai"\nmodel = "x"', r":1: models.primary.*needs base_url"),
        (f"[models.primary]\n{SERVER}apikey = 1", r":5: models.primary.apikey: .*'api_key'"),
        (f"[models.primary]\n{SERVER}timeout = 0", r":5: models.primary.timeout: .*greater than 0"),
        (
            f'[models.primary]\n{SERVER}api_key = "two words"',
            r":5: models.primary.api_key: .*space",
        ),
        (f'[models.primary]\n{SERVER}api_key = ""', r":5: models.primary.api_key: .*leave it out"),
        (SERVER.join(["[models.primary]\n", ""]).replace("https:", "ftp:"), r":3: .*http"),
        (SERVER.join(["[models.primary]\n", ""]).replace("//", "//me:pw@"), r":3: .*use api_key"),
        (SERVER.join(["[models.primary]\n", ""]).replace("//llm", "//[llm"), r":3: .*base_url"),
        ("models = 3", r":1: models: must hold tables"),
        ("[models]\nprimary = 3", r":2: models.primary: must be a table"),
        (
            f'[models.primary]\n{SERVER}api_key = "${{NO_SUCH}}"',
            r":5: models.primary.api_key: .*set",
        ),
    ],
)
def test_errors_name_file_key_and_fix(mine: Mine, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        mine(text)
    assert re.search(told, str(error.value)), str(error.value)
    assert "me:pw" not in str(error.value)
    assert "two words" not in str(error.value)


@pytest.mark.parametrize("kind", ["openai", "anthropic", "ollama"])
def test_a_projects_model_counts_only_once_trusted(project: Path, home: Path, kind: str) -> None:
    text = f'[models.primary]\ntype = "{kind}"\nmodel = "m"\nbase_url = "http://127.0.0.1:1/v1"\n'
    path = project / "memsheaf.toml"
    path.write_text(text, encoding="utf-8")
    config = load_config(project)
    assert config.models == {}
    assert "names a chat model" in config.warnings[0]
    document = read_document(path)
    assert document is not None
    TrustStore(home).trust(document)
    assert load_config(project).models["primary"].type == kind


def test_no_key_goes_to_another_files_server(project: Path, home: Path, mine: Mine) -> None:
    mine(f'[models.primary]\n{SERVER}api_key = "mine-alone"\n[models.auxiliary]\n{SERVER}')
    path = project / "memsheaf.toml"
    path.write_text(f"[models.primary]\n{SERVER}".replace("llm.", "other."), encoding="utf-8")
    document = read_document(path)
    assert document is not None
    TrustStore(home).trust(document)
    config = load_config(project)
    assert config.models["primary"].base_url == "https://other.example/v1"
    assert config.models["primary"].api_key is None
    assert set(config.models) == {"primary", "auxiliary"}


def test_the_page_names_every_model_and_key() -> None:
    page = Path(__file__).parents[3] / "docs" / "configuration.md"
    section = page.read_text(encoding="utf-8").split("## `[models.NAME]`", 1)[1].split("\n## ")[0]
    named = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert named == [*MODEL_NAMES, *ModelSettings.model_fields]
