"""Plans checked before anything is started."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heatsoak.errors import UsageError
from heatsoak.launch import catalog
from heatsoak.recorder.jobs import siblings_of
from heatsoak.recorder.plan import Plan
from heatsoak.recorder.prepare import check_slices, prepare

SYNTHETIC = "synthetic:rtx-5090"


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (Plan("nonsense"), "unknown device 'nonsense'"),
        (Plan("synthetic:rtx-9999"), "rtx-9999"),
        (Plan(SYNTHETIC, protocol="eternal"), "unknown protocol 'eternal'; there is smoke, quick"),
        (Plan(SYNTHETIC, workload="llama"), "unknown workload 'llama'; there is"),
        (Plan(SYNTHETIC, workload="llm_pretrain"), "does not run on synthetic-0"),
        (Plan("cpu", workload="synthetic"), "does not run on cpu"),
        (Plan("cpu", speed=2.0), "only synthetic devices"),
        (Plan(f"{SYNTHETIC},cpu", speed=2.0), "only synthetic devices"),
        (Plan(SYNTHETIC, speed=0.0), "speed must be above 0 and at most 1000"),
        (Plan(SYNTHETIC, speed=float("nan")), "speed must be above 0 and at most 1000"),
        (Plan(SYNTHETIC, recipe={"size": "70B"}), "no size '70B'"),
        (Plan(SYNTHETIC, recipe={"settings": {"depth": 3}}), "no option 'depth'"),
        (Plan(SYNTHETIC, out="here.heatsoak"), "absolute path, not 'here.heatsoak'"),
    ],
)
def test_a_bad_plan_is_refused_in_one_line(plan, said):
    with pytest.raises(UsageError) as caught:
        prepare(plan)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_torch_a_training_workload_is_refused(monkeypatch):
    monkeypatch.setattr(catalog, "training_problem", lambda: "PyTorch not installed; pip ...")
    with pytest.raises(UsageError, match="cannot train llm_pretrain: PyTorch not installed"):
        prepare(Plan("cpu"))
    assert prepare(Plan(SYNTHETIC)).jobs[0].workload == "synthetic"


def test_each_device_gets_its_own_job_and_its_default_workload():
    prepared = prepare(Plan(f"{SYNTHETIC}x2,cpu"))
    assert [(job.workload, job.mode, job.device_ids) for job in prepared.jobs] == [
        ("synthetic", "synthetic", ("synthetic-0",)),
        ("synthetic", "synthetic", ("synthetic-1",)),
        ("llm_pretrain", "replica", ("cpu",)),
    ]
    assert prepared.provenance == "synthetic"
    assert prepare(Plan("cpu")).provenance == "measured"


def test_a_plan_survives_the_way_to_the_recorder():
    plan = Plan(SYNTHETIC, recipe={"settings": {"a": 1}}, speed=60.0, name="ten °C")
    assert Plan.from_json(plan.to_json()) == plan


def test_b4_several_slices_of_one_job_are_refused_with_the_reason():
    devices = prepare(Plan(f"{SYNTHETIC}x2")).devices
    for device in devices:
        device._info = replace(device.info, mig_parent_uuid="GPU-p")
    both = tuple(device.info.device_id for device in devices)
    row = prepare(Plan(SYNTHETIC)).jobs[0]
    with pytest.raises(UsageError, match="a process can use one MIG slice only") as caught:
        check_slices([replace(row, device_ids=both, mode="ddp")], devices)
    assert "\n" not in str(caught.value)
    check_slices([replace(row, device_ids=(device_id,)) for device_id in both], devices)


def test_b3_slices_of_one_card_know_of_each_other():
    card = prepare(Plan(SYNTHETIC)).devices[0].info
    infos = [
        replace(card, device_id=f"{n}", mig_parent_uuid=parent)
        for n, parent in enumerate(["GPU-p", "GPU-q", "GPU-p", None])
    ]
    assert siblings_of(infos) == {"0": ["2"], "1": [], "2": ["0"]}


def test_a_recipe_that_only_a_gpu_can_compute_is_refused_before_anything_starts():
    with pytest.raises(UsageError, match="precision tf32 needs a GPU; the CPU takes bf16 or fp32"):
        prepare(Plan("cpu", recipe={"precision": "tf32"}))
