"""The limits of a build: its import has its own, in which compilers do not count, and no words stretch the other."""

from __future__ import annotations

import threading

import pytest

from harness.build.builder_progress import BEGINS_AGAIN, COMPILED, COMPILES, IMPORTS, BuildLimits, Speaker


class Clock:
    def __init__(self):
        self.s = 1000.0

    def __call__(self):
        return self.s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def limits(clock):
    return BuildLimits(600.0, 60.0, clock)


def after(limits, clock, *said):
    """Say each frame at its second after the beginning."""
    for at_s, frame in said:
        clock.s = 1000.0 + at_s
        assert limits.heed(frame)


def test_before_its_import_only_the_build_has_a_limit(limits, clock):
    clock.s += 100
    assert limits.left_s == 500 and not limits.is_import_over


def test_an_import_that_never_ends_is_over_before_its_build(limits, clock):
    after(limits, clock, (5, IMPORTS))
    assert limits.left_s == 60
    clock.s += 61
    assert limits.left_s == 0 and limits.is_import_over


def test_compilers_do_not_count_against_the_import(limits, clock):
    after(limits, clock, (5, IMPORTS), (15, COMPILES))
    assert limits.left_s == 585 and not limits.is_import_over
    after(limits, clock, (300, COMPILED))
    assert limits.left_s == 50
    after(limits, clock, (310, COMPILES), (320, COMPILED))
    assert limits.left_s == 40


def test_each_import_of_a_second_try_has_its_own_time(limits, clock):
    after(limits, clock, (0, IMPORTS), (50, IMPORTS))
    assert limits.left_s == 60


def test_what_is_built_again_has_the_time_of_a_build_again_and_once(limits, clock):
    after(limits, clock, (0, IMPORTS), (1, COMPILES), (500, BEGINS_AGAIN))
    assert limits.left_s == 600
    assert not limits.heed(BEGINS_AGAIN)  # which no builder of ours says twice


def test_what_compiles_without_an_import_has_the_limit_of_a_build_alone(limits, clock):
    after(limits, clock, (0, COMPILES), (10, COMPILED))
    assert limits.left_s == 590


def test_no_words_stretch_the_limit_of_a_build(limits, clock):
    for second in range(600):
        after(limits, clock, (second, IMPORTS))
    clock.s = 1600.0
    assert limits.left_s == 0 and not limits.is_import_over


def test_who_says_too_much_is_not_listened_to(limits):
    heard = sum(limits.heed(IMPORTS) for _ in range(5000))
    assert heard < 5000


def test_an_answer_is_none_of_these_words(limits):
    assert not limits.heed({"extensions": []}) and not limits.heed({"stage": "sleeps"})


def test_threads_that_compile_at_once_are_one_wait_for_compilers():
    said = []
    speaker = Speaker(said.append)
    both = threading.Barrier(2)

    def compiles():
        with speaker.compiling():
            both.wait(30)

    threads = [threading.Thread(target=compiles) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert said == [COMPILES, COMPILED]


def test_a_wait_for_compilers_ends_with_what_they_raise():
    said = []
    with pytest.raises(ValueError), Speaker(said.append).compiling():
        raise ValueError
    assert said == [COMPILES, COMPILED]


def test_a_build_begins_again_in_words_once():
    said = []
    speaker = Speaker(said.append)
    speaker.begin_again()
    speaker.begin_again()
    assert said == [BEGINS_AGAIN]


def test_after_the_answer_nothing_more_is_said():
    frames = []
    speaker = Speaker(frames.append)
    with speaker.compiling():
        speaker.answer({"extensions": []})
    speaker.imports()
    assert frames == [COMPILES, {"extensions": []}]
