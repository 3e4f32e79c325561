"""The pages on formats: each importer has one, and its sample becomes what its table says."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from memsheaf.sessionsearch import ConversationLog
from memsheaf.sessionsearch.importers import import_paths
from memsheaf.stack import Scope

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {path.stem: path for path in (DOCS / "importing").glob("*.md")}
MIRA = Scope(user_id="mira")


def test_each_importer_has_a_page_and_the_overview_names_it() -> None:
    ours = {
        entry.name
        for entry in entry_points(group="memsheaf.importers")
        if entry.value.startswith("memsheaf.")
    }
    assert set(PAGES) == ours
    overview = (DOCS / "sessions.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(importing/([\w-]+)\.md\)", overview)) == ours


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_sample_becomes_what_the_table_says(name: str, tmp_path: Path) -> None:
    page = PAGES[name].read_text(encoding="utf-8")
    sample = re.search(r"## Sample\n\n```\w+\n(.*?)```\n", page, re.DOTALL)
    assert sample is not None
    file = tmp_path / "sample.data"
    file.write_text(sample[1], encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (.*) \|$", page, re.MULTILINE)[1:]
    with ConversationLog(tmp_path / "log.db") as log:
        (report,) = import_paths(file, log, MIRA).files
        assert (report.format, report.problem_count) == (name, 0)
        (conversation,) = log.conversations(MIRA)
        items = log.items(conversation.id, MIRA)
    assert [(item.type, str(item.role), " ".join(item.text.split())) for item in items] == rows
    for heading in ("## Kept", "## Not kept"):
        assert heading in page


@pytest.mark.parametrize("name", sorted(PAGES))
def test_links_of_the_page_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGES[name].read_text(encoding="utf-8")):
        assert (DOCS / "importing" / target).exists(), target
