"""The kit catches each broken provider, by the test that is meant for it."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

import pytest

CAUGHT_BY = {
    "WrongOrder": "test_better_match_comes_first",
    "DistanceForScore": "test_better_match_comes_first",
    "RelevanceIsScore": "test_relevance_lies_between_0_and_1_and_grows_with_the_match",
    "ScopeIgnored": "test_search_stays_in_its_scope",
    "PatternScope": "test_names_that_look_like_patterns_are_names",
    "ForgetLies": "test_forget_tells_whether_something_was_deleted",
    "ForgetForAnyone": "test_foreign_id_is_not_forgotten",
    "LimitIgnored": "test_limit_holds",
    "FilterAfterLimit": "test_filter_comes_before_the_limit",
    "MutatedRecord": "test_record_comes_back_whole",
    "SharedRecord": "test_nothing_mutable_is_shared",
    "LostUnicode": "test_record_comes_back_whole",
    "UpdateLosesFields": "test_update_changes_what_it_names",
    "DuplicateOnStore": "test_storing_again_makes_no_duplicate",
    "OlderCopyWins": "test_older_copy_is_ignored",
    "EmptyQueryRaises": "test_blank_text_gives_the_most_recent",
    "QuerySyntaxRaises": "test_any_text_is_a_query",
    "AllWordsNeeded": "test_one_word_of_a_question_is_enough",
    "ShowsExpired": "test_expired_record_is_never_returned",
    "PagesOverlap": "test_pages_neither_overlap_nor_skip",
    "SearchTouches": "test_reading_does_not_touch",
    "Forgetful": "test_reopened_it_holds_the_same",
}


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The tests that failed, by provider: one run of the kit over all broken ones."""
    folder = tmp_path_factory.mktemp("kit")
    report = folder / "report.xml"
    cases = Path(__file__).with_name("conformance_broken.py")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", str(cases), "-q", "--tb=no", f"--rootdir={folder}",
         "-c", "/dev/null", "--import-mode=importlib", "-p", "no:cacheprovider",
         f"--junitxml={report}"],
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert run.returncode == 1, run.stdout[-2_000:] + run.stderr[-2_000:]
    found: dict[str, set[str]] = defaultdict(set)
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            provider = case.attrib["classname"].rpartition(".Test")[2]
            found[provider].add(case.attrib["name"].partition("[")[0])
    return found


@pytest.mark.parametrize(("provider", "test"), CAUGHT_BY.items())
def test_broken_provider_is_caught(failed: dict[str, set[str]], provider: str, test: str) -> None:
    assert test in failed[provider]


def test_every_broken_provider_was_run(failed: dict[str, set[str]]) -> None:
    assert set(failed) == set(CAUGHT_BY)
