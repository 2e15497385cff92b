"""What the doctor sees on cards as the driver describes them."""

from __future__ import annotations

LOOK = """
import json, os
from heatsoak.doctor import examine, look
path = os.environ["NVML_EMULATOR_SCENARIO"]
seen = {}
for name, scenario in SCENARIOS.items():
    with open(path + ".new", "w") as file:
        file.write(scenario)
    os.replace(path + ".new", path)
    seen[name] = [[f.id, f.device_id, f.severity, f.text] for f in examine(look())]
print(json.dumps(seen))
"""
EXPECTED = {
    "locked-clocks": {("clocks", "0"), ("power-limit", "1"), ("persistence", "2")},
    "link-flaps": {("pcie", "1"), ("pcie", "2")},
    "ecc-storm": {("defects", "0")},
    "hidden-processes": {("users", "0"), ("users", "1")},
    "mig": {("mig", "0")},
    "mixed-cards": {("generations", None), ("route", None), ("peers", None)},
    "eight-cards": set(),
}
OF_CARDS = {
    "clocks", "power-limit", "persistence", "pcie", "defects", "mig", "generations", "peers",
}  # fmt: skip
"""Findings that the scenarios are about; those of this host and of busy cards are left out."""


def test_what_is_wrong_is_found_and_nothing_else(nvml):
    texts = {name: nvml.read(name) + "now 30\n" for name in EXPECTED}
    seen = nvml.run(f"SCENARIOS = {texts!r}\n{LOOK}")
    for name, expected in EXPECTED.items():
        bad = {(kind, device) for kind, device, severity, _ in seen[name] if severity != "ok"}
        assert expected <= bad, name
        unexpected = {one for one in bad - expected if one[0] in OF_CARDS}
        if name not in ("eight-cards", "mixed-cards"):
            unexpected -= {("peers", None)}  # Only these two say how their cards are joined.
        assert not unexpected, name
    users = {device: text for kind, device, _, text in seen["hidden-processes"] if kind == "users"}
    assert "3999999" in users["0"]
    assert "no process is listed" in users["1"]


def test_c8_a_torch_without_kernels_for_the_card_is_found_before_the_run(nvml):
    """`is_available()` is true there: the card, not torch, must be what is asked."""
    nvml.play("one-card")
    found = nvml.run(
        """
import json
from dataclasses import replace
from heatsoak.doctor import examine, look
from heatsoak.doctor.machine import CardMeasures
machine = look("0")

def severities(architectures, problem=None):
    stack = replace(machine.stack, torch="2.6.0", torch_cuda="12.4", architectures=architectures)
    cards = tuple(replace(c, measures=CardMeasures(problem=problem)) for c in machine.cards)
    findings = examine(replace(machine, stack=stack, cards=cards))
    return {f.id: [f.severity, f.text] for f in findings if f.id in ("architectures", "kernel")}

print(json.dumps([severities(("sm_80", "sm_90")), severities(("sm_90", "sm_120")),
                  severities(("sm_90", "compute_90")),
                  severities(("sm_120",), "no kernel image is available")]))
"""
    )
    old, new, translated, broken = found
    assert old["architectures"][0] == "error"
    assert "no kernels for sm_120 (it has sm_80, sm_90)" in old["architectures"][1]
    assert (new["architectures"][0], new["kernel"][0]) == ("ok", "ok")
    assert translated["architectures"][0] == "warning"
    assert broken["kernel"][0] == "error"
    assert "no kernel image is available" in broken["kernel"][1]
