"""How long sentences are: what counts as prose, and where a sentence ends."""

from __future__ import annotations

import importlib.util

from harness.model.paths import REPOSITORY

_SPEC = importlib.util.spec_from_file_location("prose", REPOSITORY / "benchmarks" / "prose.py")
prose = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(prose)


def test_code_tables_headings_and_targets_of_links_are_no_prose():
    page = "# A title of five words\n\n| a | b |\n|---|---|\n\n```sh\nls a b c\n```\n\nOne [two three](four/five.md).\n"
    assert prose.sentences(page) == ["One [two three]."]


def test_a_sentence_ends_at_its_stop_and_with_its_item_and_not_at_an_abbreviation_or_a_decimal():
    page = "It took 0.5 s, e.g. here. Then more.\n\n- one item\n- another\n  of three\n"
    assert prose.lengths(page) == [2, 2, 3, 6]


def test_a_page_without_prose_has_no_figures():
    assert prose.figures("| a |\n") == (0, 0.0, 0, 0)


def test_pages_for_users_have_short_sentences():
    pages = ("guide.md", "rules.md", "verdicts.md", "contributing.md", "faq.md")
    for name in ("README.md", *(f"docs/{page}" for page in pages)):
        _, mean, p90, _ = prose.figures((REPOSITORY / name).read_text(encoding="utf-8"))
        assert mean <= 16 and p90 <= 25, (name, mean, p90)
