"""docs/reference.md says what the code says, and every status and reason code has its words."""

from __future__ import annotations

import importlib.util

from harness.model.paths import REPOSITORY
from harness.model.verdict import ReasonCode, Status

_SPEC = importlib.util.spec_from_file_location("write_reference", REPOSITORY / "docs" / "write_reference.py")
write_reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(write_reference)


def test_the_reference_is_current():
    assert write_reference.PATH.read_text(encoding="utf-8") == write_reference.text(), (
        "docs/reference.md is not what the code says: type python docs/write_reference.py"
    )


def test_every_status_and_every_reason_code_is_explained_once():
    assert set(write_reference.STATUSES) == set(Status)
    assert set(write_reference.CODES) == set(ReasonCode) - {ReasonCode.NONE}


def test_the_words_stand_in_the_order_of_the_alphabet_each_in_short_sentences():
    assert sorted(write_reference.WORDS, key=str.lower) == list(write_reference.WORDS)
    sentences = [each for meaning in write_reference.WORDS.values() for each in meaning.split(". ")]
    assert [each for each in sentences if len(each.split()) > 25] == []


def test_every_page_for_newcomers_leads_to_the_list_of_words():
    for page in ("README.md", "docs/guide.md", "docs/verdicts.md"):
        assert "reference.md#words)" in (REPOSITORY / page).read_text(encoding="utf-8"), page
