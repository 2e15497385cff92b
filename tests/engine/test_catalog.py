"""Workloads as their files describe them, and recipes made from options."""

from __future__ import annotations

import subprocess
import sys

import pytest

from heatsoak.errors import UsageError
from heatsoak.launch import catalog
from heatsoak.launch.catalog import (
    WorkloadInfo,
    default_workload,
    make_recipe,
    memory_needed_bytes,
)
from heatsoak.telemetry.device import DeviceInfo

GIB = 1024**3
CPU = DeviceInfo("cpu", "cpu-here", "a CPU", "cpu", "measured", memory_total_bytes=64 * GIB)
SYNTHETIC = DeviceInfo("synthetic-0", "SYNTHETIC-X-0", "SYNTHETIC X", "synthetic", "synthetic")
INFO = WorkloadInfo(
    name="toy", version=1, unit="tokens", title="Toy", archetype="none", kinds=("nvidia", "cpu"),
    sizes={
        "cpu-tiny": {"memory_gib": 1.0, "kinds": ["cpu"], "recipe": {"context": 256}},
        "small": {"memory_gib": 6.0, "kinds": ["nvidia"]},
        "large": {"memory_gib": 20.0, "kinds": ["nvidia"]},
    },
    defaults={
        "size": "cpu-tiny", "context": 2048, "micro_batch": 4, "accumulate": 1,
        "precision": "bf16", "attention": "auto", "compile": False, "checkpointing": False,
        "optimizer": "adamw", "settings": {"shuffle": True},
    },
    options={
        "context": "int", "precision": ["bf16", "fp32"], "compile": [False, True],
        "learning_rate": "float", "shuffle": [False, True],
    },
)  # fmt: skip


def card(gib):
    return DeviceInfo("0", "GPU-1", "card", "nvidia", "measured", memory_total_bytes=gib * GIB)


@pytest.mark.parametrize(
    ("device", "size"),
    [(card(24), "large"), (card(21), "small"), (card(4), "small"), (CPU, "cpu-tiny")],
)
def test_the_largest_size_that_leaves_a_reserve_is_chosen(device, size):
    assert make_recipe(INFO, device, {}).size == size


def test_a_transformers_size_is_chosen_by_what_its_options_need():
    info = catalog.workloads()["llm_pretrain"]
    assert make_recipe(info, card(32), {}).size == "1B"
    # Four times the context: the activations of 1B no longer fit.
    assert make_recipe(info, card(32), {"context": 8192}).size == "125M"
    eased = make_recipe(info, card(32), {"context": 8192, "checkpointing": True})
    assert eased.size == "1B"
    needed = [
        memory_needed_bytes(info, make_recipe(info, card(32), {"size": "1B", "context": context}))
        for context in (1024, 2048, 8192)
    ]
    assert needed == sorted(needed)
    assert needed[1] / GIB == pytest.approx(24.7, abs=0.2)


def test_what_a_file_states_holds_for_the_sizes_own_recipe_alone():
    own = make_recipe(INFO, card(24), {})
    assert memory_needed_bytes(INFO, own) == 20 * GIB
    changed = make_recipe(INFO, card(24), {"context": 512})
    assert memory_needed_bytes(INFO, changed) is None


def test_a_size_changes_the_defaults_and_options_change_both():
    assert make_recipe(INFO, CPU, {}).context == 256
    assert make_recipe(INFO, card(24), {}).context == 2048
    asked = {"context": 512, "compile": True, "settings": {"learning_rate": "1e-3"}}
    recipe = make_recipe(INFO, CPU, asked)
    assert (recipe.context, recipe.compile) == (512, True)
    assert recipe.settings == {"shuffle": True, "learning_rate": 1e-3}


def test_spelled_values_are_understood():
    recipe = make_recipe(
        INFO, CPU, {"settings": {"context": "512", "compile": "on", "shuffle": "off"}}
    )
    assert (recipe.context, recipe.compile, recipe.settings) == (512, True, {"shuffle": False})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": "70B"}, "it has cpu-tiny, small, large"),
        ({"precision": "fp4"}, "takes precision bf16, fp32; not fp4"),
        ({"compile": "perhaps"}, "takes compile off, on; not perhaps"),
        ({"context": "long"}, "takes a number for context, not 'long'"),
        ({"context": 0}, "whole number from 1 up"),
        ({"context": 1.5}, "whole number from 1 up"),
        ({"optimizer": "sgd"}, "no option 'optimizer'; it has size, context"),
        ({"settings": {"depth": 3}}, "no option 'depth'"),
    ],
)
def test_what_a_workload_does_not_know_is_refused_with_what_it_knows(options, said):
    with pytest.raises(UsageError) as caught:
        make_recipe(INFO, CPU, options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_device_of_another_kind_is_refused():
    with pytest.raises(UsageError, match="runs on nvidia, cpu devices"):
        make_recipe(INFO, SYNTHETIC, {})


def test_default_workloads():
    assert default_workload([CPU]) == default_workload([card(8), CPU]) == "llm_pretrain"
    assert default_workload([SYNTHETIC]) == "synthetic"
    with pytest.raises(UsageError):
        default_workload([CPU, SYNTHETIC])


@pytest.mark.parametrize("device", [CPU, SYNTHETIC, card(24)])
def test_every_shipped_workload_makes_a_recipe_for_its_devices(device):
    for info in catalog.workloads().values():
        if device.kind in info.kinds:
            recipe = make_recipe(info, device, {})
            assert recipe.workload == info.name
            assert device.kind in info.sizes[recipe.size]["kinds"]


def test_an_unknown_workload_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="llm_pretrain, synthetic"):
        catalog.find_workload("llama")


@pytest.mark.parametrize("text", ["x = 1\n", "WORKLOAD = {\n", "WORKLOAD = {'version': print}\n"])
def test_a_file_that_does_not_describe_a_workload_is_told(tmp_path, text):
    path = tmp_path / "odd.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"odd\.py"):
        catalog._read(path)


def test_the_catalogue_imports_no_workload():
    program = (
        "import sys; from heatsoak.launch import catalog; catalog.workloads(); "
        "catalog.training_problem(); "
        "print([m for m in ('torch', 'lightning', 'heatsoak_workloads') if m in sys.modules])"
    )
    command = [sys.executable, "-c", program]
    out = subprocess.run(command, check=True, capture_output=True, text=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"precision": "tf32"}, "precision tf32 needs a GPU; the CPU takes bf16 or fp32"),
        ({"precision": "fp16"}, "precision fp16 needs a GPU; the CPU takes bf16 or fp32"),
        ({"attention": "cudnn"}, "attention cudnn needs a GPU; the CPU takes auto, flash or math"),
    ],
)
def test_what_only_a_gpu_can_compute_is_refused_on_the_cpu_before_anything_starts(options, said):
    with pytest.raises(UsageError, match=said) as caught:
        make_recipe("llm_pretrain", CPU, options)
    assert "\n" not in str(caught.value)
    recipe = make_recipe("llm_pretrain", card(24), options)
    assert recipe.cpu_problem == said
