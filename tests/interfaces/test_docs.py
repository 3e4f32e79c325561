"""The pages say what is so: commands, keys, the table of scopes, links, and code that runs."""

import re
from pathlib import Path

import pytest

from memsheaf.interfaces.cli import COMMANDS
from memsheaf.stack import Scope, Status
from memsheaf.stack.config_settings import Placement

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("index.md", "concepts.md", "commands.md", "configuration.md", "providers.md")


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its two head lines."""
    section = text_of(page).split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_command_has_its_heading() -> None:
    headings = re.findall(r"^## `memsheaf (\w+)", text_of("commands.md"), re.MULTILINE)
    assert sorted(headings) == sorted(COMMANDS)


def test_every_key_of_a_provider_is_in_the_table() -> None:
    keys = re.findall(r"^\| `(\w+)` \|", text_of("configuration.md"), re.MULTILINE)
    assert set(Placement.model_fields) <= set(keys)


def _scope(cell: str) -> Scope:
    if cell == "everyone":
        return Scope.EVERYONE
    pairs = [] if cell == "(none)" else [part.split("=") for part in cell.split()]
    return Scope(**{name if name == "namespace" else f"{name}_id": value for name, value in pairs})


@pytest.mark.parametrize(("query", "record", "found"), rows("concepts.md", "Scope"))
def test_the_table_of_scopes_is_true(query: str, record: str, found: str) -> None:
    assert _scope(query).matches(_scope(record)) is (found == "yes")


def test_every_status_is_explained() -> None:
    assert [row[0].strip("`") for row in rows("concepts.md", "Outcomes")] == list(Status)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[\w-]+)?\)", text_of(page)):
        assert target.startswith("http") or (DOCS / target).exists(), target


@pytest.mark.parametrize("page", ["index.md", "concepts.md"])
def test_the_code_of_the_page_runs(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", text_of(page), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {"__name__": "page"})
