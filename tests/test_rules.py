"""docs/rules.md says what the code says: its constants are read there, and so is the theory of operation."""

from __future__ import annotations

import importlib.util
import string

from harness.model.paths import REPOSITORY

_SPEC = importlib.util.spec_from_file_location("write_rules", REPOSITORY / "docs" / "write_rules.py")
write_rules = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(write_rules)


def test_the_rules_are_current():
    assert write_rules.PATH.read_text(encoding="utf-8") == write_rules.text(), (
        "docs/rules.md is not what the code says: type python docs/write_rules.py"
    )


def test_every_constant_that_has_a_name_is_on_the_page():
    named = {each.split("[")[0] for _, each, _, _ in string.Formatter().parse(write_rules.PAGE) if each}
    derived = {
        "binades", "cpu_cache_bytes", "extension_bytes", "frame_bytes", "in_worker_us", "margins", "read_bytes",
        "scratch_bytes", "slow_truth_s", "slowed_blamed_us", "small_row", "snapshot_bytes", "source_bytes",
        "tail_blamed_us", "ungated_us", "wait_s",
    }
    assert {*write_rules._NAMED, *write_rules._OF_DEVICES, *write_rules._OF_PROBES} - named <= derived
    assert named <= set(write_rules.constants())


def test_a_constant_that_changes_in_the_code_changes_on_the_page(monkeypatch):
    from harness.audit import clock_audit

    monkeypatch.setattr(clock_audit, "_FLOOR_SHARE", 0.77)
    assert "below 0.77 of it" in write_rules.text()


def test_the_theory_of_operation_is_that_of_the_judge_s_room():
    import harness.judge

    theory = write_rules.constants()["theory"]
    assert theory and theory in harness.judge.__doc__
    assert "three kinds of process" in theory.lower()
