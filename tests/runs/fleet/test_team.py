"""The devices of one model: what is told of one that differs in software from the others."""

from __future__ import annotations

from harness.device.identity import DeviceIdentity
from harness.runs.fleet.team import Team


def test_another_driver_or_torch_is_told_by_both_versions_and_the_same_is_not():
    team = Team.__new__(Team)
    team._devices = {0: DeviceIdentity("cuda", "H", uuid="a", driver="580.1", torch="2.13.0", cuda="13.0")}
    assert team.unlike(DeviceIdentity("cuda", "H", uuid="b", driver="580.1", torch="2.13.0", cuda="13.0")) is None
    said = team.unlike(DeviceIdentity("cuda", "H", uuid="c", driver="570.9", torch="2.12.0", cuda="13.0"))
    assert said == "driver 570.9 where another has 580.1, torch 2.12.0 where another has 2.13.0"
