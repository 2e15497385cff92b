"""NVIDIA cards that fail, hang, get lost or fall ill while they are watched (cases C1 to C7)."""

from __future__ import annotations

import pytest

PRELUDE = """
import json, os, sys, threading, time
from dataclasses import asdict
from heatsoak.errors import DeviceUnavailableError
from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
from heatsoak.telemetry.vendors import nvidia
from heatsoak.telemetry.vendors.nvidia import NvidiaDevice

path = os.environ["NVML_EMULATOR_SCENARIO"]
base = open(path).read()

def more(*statements):
    with open(path + ".new", "w") as file:
        file.write("\\n".join([base, *statements, ""]))
    os.replace(path + ".new", path)

def until(condition):
    end = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
    return found

def end_of(device):
    try:
        device.read(1.0)
    except (DeviceLostError, DeviceReadError) as error:
        return [type(error).__name__, str(error)]

def tell(*values):
    print(json.dumps(values))
"""


@pytest.fixture
def run(nvml):
    """run(code, scenario_name, *statements): what the code tells, behind the prelude."""

    def play(code, name, *statements):
        nvml.play(name, *statements)
        return nvml.run(PRELUDE + code)

    return play


def test_c1_a_lost_card_says_its_xid_and_its_neighbour_is_read_on(run):
    lost, watts = run(
        """
first, second = NvidiaDevice(0), NvidiaDevice(1)
assert second.health().xids == ()  # what came before it was opened is not its
more("xid 1 79")
until(lambda: second.health().xids == (79,))
more("fail 1 * GPU_IS_LOST")
tell(end_of(second), first.read(1.0).power_w)
""",
        "one-card",
        "card 1 like rtx-5090",
    )
    assert lost == ["DeviceLostError", "the GPU is lost (it has fallen off the bus); Xid 79"]
    assert watts > 0


def test_c1_a_card_that_asks_for_a_reset_is_lost_too(run):
    (lost,) = run(
        'card = NvidiaDevice(0)\nmore("fail 0 * RESET_REQUIRED")\ntell(end_of(card))', "one-card"
    )
    assert lost == ["DeviceLostError", "the GPU requires a reset"]


def test_c2_a_card_that_the_driver_no_longer_finds_is_lost_without_any_xid(run):
    # Every query fails for no good reason, and asked anew the driver does not find the card.
    confused, lost = run(
        """
card = NvidiaDevice(1)
more("fail 1 * UNKNOWN")
confused = end_of(card)
more("fail 1 * UNKNOWN", "fail * nvmlDeviceGetHandleByUUID NOT_FOUND")
tell(confused, end_of(card))
""",
        "one-card",
        "card 1 like rtx-5090",
    )
    assert confused == ["DeviceReadError", "the driver reports an unknown error"]
    assert lost[0] == "DeviceLostError"
    assert "no longer among those the driver finds" in lost[1]


def test_c3_a_card_that_hangs_when_asked_what_it_is_does_not_hide_the_others(run):
    took_s, found, unreadable, opened = run(
        """
nvidia.OPEN_WITHIN_S = 0.5
start = time.monotonic()
survey = nvidia.survey()
took_s = time.monotonic() - start
try:
    NvidiaDevice(1)
except DeviceUnavailableError as error:
    opened = str(error)
tell(took_s, [info.device_id for info in survey.found], survey.unreadable, opened)
""",
        "one-card",
        "card 1-2 like rtx-5090",
        "hang 1 nvmlDeviceGetUUID",
    )
    assert found == ["0", "2"]
    assert unreadable == {"1": "a call into the NVIDIA driver does not return"}
    assert opened == "device 1 cannot be read: a call into the NVIDIA driver does not return"
    assert took_s < 20  # and not for ever


def test_c3_nvml_is_not_shut_down_under_a_call_that_hangs(run):
    # The other card, opened later and closed first, must be readable to the end.
    is_alive, before, after, shut = run(
        """
first, second = NvidiaDevice(0), NvidiaDevice(1)
more("hang 0 nvmlDeviceGetPowerUsage")
thread = threading.Thread(target=end_of, args=(first,), daemon=True)
thread.start()
before = second.read(1.0).power_w
first.close()
after = second.read(2.0).power_w
second.close()
import pynvml
tell(thread.is_alive(), before, after, pynvml.nvmlDeviceGetCount())
""",
        "one-card",
        "card 1 like rtx-5090",
    )
    assert is_alive
    assert before > 0
    assert after > 0
    assert shut == 2  # NVML still counts: the use of the card that hangs was not ended


def test_c3_defects_are_asked_for_beside_a_reading_that_hangs(run):
    (corrected,) = run(
        """
card = NvidiaDevice(0)
more("hang 0 nvmlDeviceGetPowerUsage")
threading.Thread(target=end_of, args=(card,), daemon=True).start()
tell(card.health().ecc_corrected)
""",
        "ecc-storm",
        "now 3",
    )
    assert corrected == 390


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("LIB_RM_VERSION_MISMATCH", "replaced while running: reboot"),
        ("DRIVER_NOT_LOADED", "unloaded"),
    ],
)
def test_c5_a_driver_that_goes_while_a_card_is_read_is_told(run, code, words):
    (lost,) = run(
        f'card = NvidiaDevice(0)\nmore("fail * * {code}")\ntell(end_of(card))', "one-card"
    )
    assert lost[0] == "DeviceLostError"
    assert words in lost[1]


def test_c7_errors_that_come_under_load_show_as_what_got_worse(run):
    before, after, worse = run(
        """
card = NvidiaDevice(0)
card.read(0.0)
before = card.health()
more("now 3", "xid 0 94 2", "xid 0 63 2.2")
until(lambda: len(card.health().xids or ()) == 2)
after = card.health()
tell(asdict(before), asdict(after), after.worse_than(before))
""",
        "ecc-storm",
        "now 0",
    )
    assert (before["ecc_corrected"], before["ecc_uncorrected"], before["xids"]) == (0, 0, [])
    assert (after["ecc_corrected"], after["ecc_uncorrected"]) == (390, 1)
    assert after["remapped_rows_uncorrected"] == 1
    assert (after["remap_is_pending"], after["remap_has_failed"]) == (True, False)
    assert worse == [
        "390 memory errors were corrected",
        "1 memory error could not be corrected",
        "1 memory row was replaced for an uncorrectable error",
        "a memory row waits for a reset to be replaced",
        f"the driver reported Xid {', '.join(map(str, after['xids']))}",
    ]
    assert sorted(after["xids"]) == [63, 94]


def test_c7_what_a_card_does_not_count_is_none_and_retired_pages_are_counted(run):
    pascal, retired = run(
        """
first, second = NvidiaDevice(0), NvidiaDevice(1)
tell(asdict(first.health()), asdict(second.health()))
""",
        "old-driver",
        "without nvmlEventSetCreate",
        "card 1 like gtx-1080-ti",
        "card 1 nvmlDeviceGetRetiredPages:0 3",
        "card 1 nvmlDeviceGetRetiredPages:1 0",
        "card 1 nvmlDeviceGetRetiredPagesPendingStatus 1",
    )
    assert set(pascal.values()) == {None}
    assert (retired["retired_pages_corrected"], retired["retired_pages_uncorrected"]) == (3, 0)
    assert retired["retirement_is_pending"] is True


def test_the_xid_watch_ends_with_its_card_and_lets_go_of_nvml(run):
    before, after = run(
        """
from heatsoak.telemetry.nvml import defects
import pynvml
defects.WAIT_MS = 50
def watches():
    return [t for t in threading.enumerate() if t.name.startswith("xid")]
card = NvidiaDevice(0)
card.read(0.0)
card.health()
before = len(watches())
card.close()
until(lambda: not watches())
try:
    pynvml.nvmlDeviceGetCount()
    after = "open"
except pynvml.NVMLError:
    after = "closed"
tell(before, after)
""",
        "one-card",
    )
    assert (before, after) == (1, "closed")


def test_finding_cards_starts_no_watch(run):
    (names,) = run(
        "nvidia.discover()\ntell([t.name for t in threading.enumerate()])",
        "one-card",
    )
    assert names == ["MainThread"]
