"""What compute-sanitizer prints, and what is read in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.verdict import ReasonCode
from harness.tools.sanitizer.sanitizer_output import read_report

RECORDED = Path(__file__).with_name("recorded")


def report(name):
    return read_report(name.partition("_")[0], (RECORDED / f"{name}.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "code", "kernel"),
    [
        ("memcheck_out_of_bounds", ReasonCode.MEMORY_ERROR, "scale_all(const float *, float *, int)"),
        ("memcheck_misaligned_2022", ReasonCode.MEMORY_ERROR, "load_four(const float *, float *)"),
        ("memcheck_in_a_helper", ReasonCode.MEMORY_ERROR, "void tiled<(int)32>(const float *, float *)"),
        ("memcheck_hardware", ReasonCode.MEMORY_ERROR, "tiled(const float *, float *)"),
        ("racecheck_error", ReasonCode.RACE, "void reverse_block<(int)256>(const float *, float *)"),
        ("initcheck_uninitialized", ReasonCode.UNINITIALIZED, "add_onto(const float *, float *, int)"),
        ("synccheck_divergent", ReasonCode.BARRIER, "half_waits(int *, int *)"),
    ],
)
def test_a_finding_has_its_code_and_the_kernel_it_is_in(name, code, kernel):
    found = report(name)
    (finding,) = found.findings
    assert (finding.code, finding.kernel) == (code, kernel)
    assert found.complete
    assert found.launched
    assert not found.troubles


def test_the_words_of_a_finding_are_the_tools_own_on_one_line():
    (finding,) = report("memcheck_out_of_bounds").findings
    assert finding.text == (
        "Invalid __global__ write of size 4 bytes at scale_all(const float *, float *, int)+0x110 in cuda.cu:9 "
        "by thread (0,0,0) in block (4,0,0); Access at 0x7f0a4ec01000 is out of bounds and is 1 bytes after the "
        "nearest allocation at 0x7f0a4ec00000 of size 4,096 bytes"
    )
    (finding,) = report("racecheck_error").findings
    assert finding.text == (
        "Error: Race reported between Write access at void reverse_block<(int)256>(const float *, float *)+0x150 in "
        "cuda.cu:27 and Read access at void reverse_block<(int)256>(const float *, float *)+0x160 in cuda.cu:30"
    )
    (finding,) = report("memcheck_misaligned_2022").findings
    assert finding.text.endswith("by thread (0,0,0) in block (0,0,0); Address 0x7f6510c00004 is misaligned")
    assert "Host Frame" not in finding.text


def test_a_read_is_told_from_a_write():
    assert report("memcheck_misaligned_2022").findings[0].is_read
    assert report("memcheck_in_a_helper").findings[0].is_read
    assert not report("memcheck_out_of_bounds").findings[0].is_read


@pytest.mark.parametrize("name", ["memcheck_clean", "racecheck_clean", "memcheck_api_errors_only", "racecheck_warning"])
def test_clean_reports_and_what_is_no_error_on_the_device_have_no_findings(name):
    found = report(name)
    assert found.findings == ()
    assert found.complete
    assert not found.troubles


def test_a_program_that_launched_nothing_is_no_clean_one():
    found = report("memcheck_no_launch")
    assert not found.launched
    assert not found.complete
    assert found.troubles == ("Error: process didn't terminate successfully",)


def test_a_device_that_the_tool_does_not_know_is_its_trouble_and_nobodys_error():
    found = report("memcheck_unsupported_device")
    assert found.findings == ()
    assert found.troubles[0].startswith("Error: Device not supported")


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
@pytest.mark.parametrize(
    "text",
    ["", "Invalid __global__ write of size 4 bytes\n", "=========\n========= \n", "=" * 1000, "\x00\x1b[2J",
     "=========     at k+0x10\n", "========= Invalid __global__ write of size 4 bytes"],
)
def test_anything_else_is_no_finding(tool, text):
    found = read_report(tool, text)
    assert found.findings == ()
    assert not found.complete


def test_a_report_that_was_cut_off_keeps_what_it_had():
    text = (RECORDED / "memcheck_out_of_bounds.txt").read_text(encoding="utf-8")
    found = read_report("memcheck", text[: text.index("=========     and is 1 bytes")])
    assert len(found.findings) == 1
    assert not found.complete


def test_windows_line_ends_and_another_language_in_between_do_not_matter():
    text = (RECORDED / "synccheck_divergent.txt").read_text(encoding="utf-8")
    (finding,) = read_report("synccheck", text.replace("\n", "\r\nпечать\r\n")).findings
    assert finding.kernel == "half_waits(int *, int *)"
