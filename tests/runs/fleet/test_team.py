"""Which devices are one team, and what is told of versions in which they differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.device.identity import DeviceIdentity
from harness.runs.fleet.team import team_of, unlike

FIRST = DeviceIdentity("cuda", "H", uuid="a", driver="580.1", torch="2.13.0", cuda="13.0")


@pytest.mark.parametrize(("changes", "difference", "is_one_team"), [
    ({}, None, True),
    ({"name": "I", "torch": "2.12.0"}, None, False),
    ({"driver": "570.2"}, "driver 570.2 where another H has 580.1", True),
    ({"torch": "2.12.0"}, "torch 2.12.0 where another H has 2.13.0", False),
    ({"torch": "2.12.0", "cuda": "12.9"}, "torch 2.12.0 where another H has 2.13.0; cuda 12.9 where another H has 13.0", False),
])
def test_another_driver_is_told_and_another_pytorch_is_another_team(changes, difference, is_one_team):
    device = replace(FIRST, uuid="b", **changes)
    assert unlike(device, [FIRST]) == difference
    assert (team_of(device) == team_of(FIRST)) == is_one_team
