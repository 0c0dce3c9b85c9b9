"""A launch with inputs of another family than the launches around it."""

from __future__ import annotations

import pytest

from harness.launch.failures import Failed
from harness.timing.probes.result import ProbeResult
from harness.timing.probes.schedule import Probe

from .conftest import USUAL_US, Session, probe, reference_of, wrong


@pytest.mark.parametrize("count", [2, 5])
def test_one_launch_has_inputs_of_another_family_and_nobody_who_takes_as_long_is_looked_at_again(count):
    session = Session()
    assert probe(session, what=Probe.INPUT_VALUE, count=count).results[Probe.INPUT_VALUE] == ProbeResult(USUAL_US, USUAL_US)
    names = [inputs.family.name for inputs in session.seen]
    assert len(names) == count and names[0] == "as given" and names.count("signs") == 1


def test_who_takes_longer_on_other_values_is_looked_at_five_times(chosen):
    chosen(2)
    session = Session(signed_us=50.0)
    found = probe(session, what=Probe.INPUT_VALUE).results[Probe.INPUT_VALUE]
    assert found == ProbeResult(USUAL_US + 50, USUAL_US) and found.is_certain and found.findings == 5
    assert [inputs.family.name for inputs in session.seen].count("signs") == 5


def test_who_is_wrong_on_other_values_while_it_is_timed_is_wrong():
    """Right in the checks, where every launch may be one, and not where it is timed."""
    session = Session()

    def verify(sets, made, only=None):
        if any(inputs.family.name == "signs" for inputs in sets):
            raise wrong()

    with pytest.raises(Failed) as caught:
        probe(session, verify, what=Probe.INPUT_VALUE)
    assert caught.value.verdict == wrong().verdict


def test_of_the_families_each_has_its_turn():
    names = set()
    for _ in range(40):
        session = Session()
        probe(session, what=Probe.INPUT_VALUE, reference=reference_of(timed=("signs", "identity")))
        names |= {inputs.family.name for inputs in session.seen}
    assert names == {"as given", "signs", "identity"}
