"""Every page: its links lead somewhere, it can be found, and code that no other test runs runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from memsheaf.models import ModelError, errors
from memsheaf.providers.local import LocalOptions
from memsheaf.providers.sqlite import SqliteOptions

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def links(page: Path) -> list[tuple[Path, str]]:
    """Targets of a page's links within the repository, with the heading after the hash."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    split = [target.partition("#") for target in targets if "://" not in target]
    return [(page.parent / path if path else page, anchor) for path, _, anchor in split]


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), target
        assert not anchor or anchor in anchors(target), f"{target}#{anchor}"


def test_every_page_is_found_from_the_readme() -> None:
    found, fresh = {ROOT / "README.md"}, {ROOT / "README.md"}
    while fresh:
        ahead = {target.resolve() for page in fresh for target, _ in links(page)}
        fresh = {page for page in ahead if page.suffix == ".md"} - found
        found |= fresh
    assert set(PAGES) - found <= {ROOT / "CONTRIBUTING.md"}  # which the hosts of code show


@pytest.mark.parametrize("name", ["local", "models", "sqlite", "text-analysis"])
def test_the_code_of_the_page_runs(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    assert code
    exec(compile(code, f"{name}.md", "exec"), {"__name__": "page"})


@pytest.mark.parametrize(("name", "options"), [("local", LocalOptions), ("sqlite", SqliteOptions)])
def test_every_option_of_a_store_is_in_its_table(name: str, options: type[BaseModel]) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    section = page.split("## Options\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(options.model_fields)


def test_every_error_of_a_model_is_in_its_table() -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page.split("## Errors\n")[1], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    kinds = {each for each in vars(errors).values() if isinstance(each, type)}
    assert named == {k.__name__ for k in kinds if issubclass(k, ModelError) and k is not ModelError}
