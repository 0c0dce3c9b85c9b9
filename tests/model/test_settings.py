"""Settings: the shipped configurations, a user's own file, and the sentences for what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.settings import Settings, load_settings, settings_names

REQUIRED = "half_width: 0.001\nbudget_s: 3\nplayers: 1\nwarmup_s: 0.5\ncheck_launches: 3\n"


def _write(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


def _message(folder: Path, text: str) -> str:
    """What is said about a settings file with this text, without the folder."""
    with pytest.raises(InputError) as caught:
        load_settings(_write(folder, text))
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(("name", "half_width", "budget_s", "players", "warmup_s", "check_launches", "segment_ms", "eagers", "row_s"), [
    ("quick", 0.005, 1.0, 1, 0.2, 2, 0.75, 1, 120.0),
    ("default", 0.001, 3.0, 1, 0.5, 3, 3.0, 3, 300.0),
    ("rigorous", 0.0005, 10.0, 5, 1.0, 5, 3.0, 5, 900.0),
])
def test_the_shipped_settings_are_those_of_the_design(
    name: str, half_width: float, budget_s: float, players: int, warmup_s: float, check_launches: int, segment_ms: float,
    eagers: int, row_s: float,
) -> None:
    looks = (8, 12, 16) if name == "quick" else (10, 20, 40, 80)
    assert load_settings(name) == Settings(
        name, half_width, budget_s, players, warmup_s, check_launches, looks=looks, segment_ms=segment_ms, eager_players=eagers,
        row_budget_s=row_s,
    )


def test_the_budget_of_a_row_is_no_other_way_to_measure(tmp_path: Path) -> None:
    plain, longer, warmer = (
        load_settings(_write(tmp_path, text)).hash
        for text in (REQUIRED, f"{REQUIRED}row_budget_s: 7\n", REQUIRED.replace("warmup_s: 0.5", "warmup_s: 9"))
    )
    assert plain == longer != warmer


def test_the_names_go_from_quick_to_rigorous_and_leave_out_the_gpus() -> None:
    assert settings_names() == ["quick", "default", "rigorous"]


def test_a_file_of_the_users_own_is_named_after_its_stem(tmp_path: Path) -> None:
    settings = load_settings(_write(tmp_path, REQUIRED + "looks: [5, 9]\nconfidence: 0.95\nsegment_ms:\n"))
    assert (settings.name, settings.interim_checks, settings.confidence) == ("mine", (5, 9), 0.95)
    assert settings.segment_ms == 3.0 and settings.budget_s == 3.0


def test_numbers_may_be_written_with_an_exponent(tmp_path: Path) -> None:
    assert load_settings(_write(tmp_path, REQUIRED.replace("0.001", "1e-3"))).half_width == 0.001


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        load_settings("quik")
    assert str(caught.value) == "there is no configuration 'quik'. Did you mean 'quick'?"


def test_a_name_like_none_lists_what_there_is() -> None:
    with pytest.raises(InputError) as caught:
        load_settings("xyzzy")
    assert str(caught.value) == "there is no configuration 'xyzzy'. There are quick, default and rigorous."


@pytest.mark.parametrize("name", ["gpus", "", "."])
def test_what_is_no_configuration_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        load_settings(name)


def test_a_missing_file_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    _write(tmp_path, REQUIRED)
    with pytest.raises(InputError) as caught:
        load_settings(str(tmp_path / "mime.yaml"))
    assert str(caught.value) == f"{tmp_path}/mime.yaml: no such file. Did you mean {tmp_path}/mine.yaml?"


@pytest.mark.parametrize(("old", "new", "says"), [
    ("half_width: 0.001", "half_width: 2",
     "mine.yaml:1: half_width must be a number between 0 and 1, relative to the speedup, not 2. "
     "Write, for example, half_width: 0.001"),
    ("half_width: 0.001", "half_width: 0.1%", "not '0.1%'"),
    ("half_width: 0.001", 'half_width: "0.001"', "Take the quotes away: 0.001"),
    ("half_width: 0.001", "half_width:", "not empty"),
    ("half_width: 0.001", "half_width: .nan", "not '.nan'"),
    ("half_width: 0.001", "half_with: 0.001",
     "mine.yaml:1: unknown key 'half_with'. Did you mean 'half_width'?"),
    ("budget_s: 3", "budget_s: 0", "mine.yaml:2: budget_s must be a number of seconds above 0, not 0."),
    ("budget_s: 3", "budget_s: true", "not true"),
    ("players: 1", "players: 1.5", "mine.yaml:3: players must be a whole number of at least 1, not 1.5."),
    ("warmup_s: 0.5\n", "", "mine.yaml:1: 'warmup_s' is missing. Write, for example, warmup_s: 0.5"),
    ("check_launches: 3", "check_launches: 3\nlooks: [10, 10]",
     "mine.yaml:6: looks must rise from each look"),
    ("check_launches: 3", "check_launches: 3\nlooks: [2, 10]",
     "looks begins with 2, and an interval takes 5 rounds"),
    ("check_launches: 3", "check_launches: 3\nlooks: 10",
     "looks must be a list of numbers of rounds, not 10."),
    ("check_launches: 3", "check_launches: 3\nlooks: [10, x]",
     "mine.yaml:6: looks[1] must be a whole number of at least 1, not 'x'."),
    ("check_launches: 3", "check_launches: 3\nconfidence: 1",
     "confidence must be a number from 0.5 to below 1"),
    ("check_launches: 3", "check_launches: 3\nname: x", "unknown key 'name'"),
    ("budget_s: 3", "budget_s: 3\nbudget_s: 4", "mine.yaml:3: 'budget_s' stands here a second time."),
    (REQUIRED, "", "mine.yaml: is empty."),
])
def test_each_mistake_has_its_sentence(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert says in _message(tmp_path, REQUIRED.replace(old, new))


def test_a_misspelt_key_is_not_reported_as_missing_too(tmp_path: Path) -> None:
    assert _message(tmp_path, REQUIRED.replace("budget_s", "budgets")).count("\n") == 0


def test_all_mistakes_are_reported_in_the_order_of_the_lines(tmp_path: Path) -> None:
    text = "half_width: 9\nbudget_s: x\nplayers: 1\nwarmup_s: -1\ncheck_launches: 3\n"
    lines = _message(tmp_path, text).splitlines()
    assert [line.split(":")[1] for line in lines] == ["1", "2", "4"]
