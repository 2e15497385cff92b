"""What is around a card: who else uses it, and how two cards are joined (cases G2, G3)."""

from __future__ import annotations

import pytest

ASK = """
import json
from dataclasses import asdict
from heatsoak.telemetry import discovery
devices = discovery.open_devices("all")
"""


@pytest.fixture
def ask(nvml):
    def run(name, code, *more):
        nvml.play(name, *more)
        return nvml.run(ASK + code)

    return run


def test_g2_a_process_whose_memory_is_not_told_has_none_and_the_card_still_has_its_own(ask):
    users, memory = ask(
        "wsl",
        """
users, _ = devices[0].users()
print(json.dumps([[asdict(user) for user in users], devices[0].read(0.0).memory_used_bytes]))
""",
        "process 0 compute 4711 ?",
    )
    assert {"pid": 4711, "kind": "compute", "memory_bytes": None} in users
    assert memory == 27120 * 1024 * 1024


def test_g3_pids_of_the_host_are_told_as_they_are_and_hidden_users_are_not_made_up(ask):
    found = ask(
        "hidden-processes",
        "print(json.dumps([[d.users()[0] and [u.pid for u in d.users()[0]], d.users()[1]]"
        " for d in devices]))",
        "card 2 name A card that lists nothing",
        "card 2 uuid GPU-2",
    )
    assert found[:2] == [[[3999999], ""], [[], ""]]
    assert found[2][0] is None
    assert "not supported" in found[2][1]


def test_a_process_in_two_modes_is_one_user_and_an_old_driver_is_asked_its_way(ask):
    (users,) = ask(
        "one-card",
        "print(json.dumps([[[u.pid, u.kind] for u in d.users()[0]] for d in devices]))",
        "process 0 compute 17 1MiB",
        "process 0 graphics 17 1MiB",
        "process 0 graphics 18 1MiB",
        "without nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetGraphicsRunningProcesses_v3",
        "without nvmlDeviceGetMPSComputeRunningProcesses_v3",
    )
    assert users == [[17, "compute"], [18, "graphics"]]


def test_two_cards_say_their_route_and_why_they_cannot_read_each_other(ask):
    found = ask(
        "mixed-cards",
        "print(json.dumps([asdict(devices[0].pair_with(devices[n])) for n in (1, 2)]))",
        "pair 0 2 nvmlDeviceGetP2PStatus:2 -",
    )
    assert found == [
        {
            "first": "0", "second": "1", "route": "sockets",
            "peer_status": "not supported", "has_nvlink": False,
        },
        {
            "first": "0", "second": "2", "route": "host bridge",
            "peer_status": "not supported", "has_nvlink": None,
        },
    ]  # fmt: skip


def test_cards_joined_by_nvlink_say_so(ask):
    pair, far = ask(
        "eight-cards",
        "print(json.dumps([asdict(devices[3].pair_with(devices[5])),"
        " devices[0].pair_with(devices[1]).route]))",
        "pair 0 1 nvmlDeviceGetTopologyCommonAncestor 99",
    )
    assert (pair["route"], pair["peer_status"], pair["has_nvlink"]) == ("sockets", "ok", True)
    assert far is None
