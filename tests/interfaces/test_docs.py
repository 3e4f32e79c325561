import re
from pathlib import Path

from memsheaf.interfaces.cli import COMMANDS
from memsheaf.stack.config_settings import Placement

DOCS = Path(__file__).parents[2] / "docs"


def test_every_command_has_its_heading() -> None:
    headings = re.findall(r"^## `memsheaf (\w+)", (DOCS / "commands.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(COMMANDS)


def test_every_key_of_a_provider_is_in_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (DOCS / "configuration.md").read_text(), re.MULTILINE)
    assert set(Placement.model_fields) <= set(rows)
