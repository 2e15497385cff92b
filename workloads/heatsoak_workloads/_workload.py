"""What all workloads share: the job they were given, the device they run on, Lightning's trainer.

A workload file offers `WORKLOAD` (the literal the catalogue reads) and
`build(job: Job) -> Training`; `run` does the rest.
"""

from __future__ import annotations

import logging
import os
import platform
import sys
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import lightning
import torch
from lightning.pytorch import Trainer
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader

from heatsoak.clock import monotonic_s
from heatsoak.progress import Done, Hello, Phase
from heatsoak.recipe import Recipe
from heatsoak_workloads._channel import WorkloadError
from heatsoak_workloads._meter import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from lightning.pytorch import LightningModule
    from torch.utils.data import IterableDataset

    from heatsoak_workloads._channel import Channel, StopRequest

DEVICE_VARIABLE = "HEATSOAK_DEVICE"
RECIPE_VARIABLE = "HEATSOAK_RECIPE"
SEED_VARIABLE = "HEATSOAK_SEED"

LIGHTNING_PRECISION: dict[str, Literal["bf16-mixed", "16-mixed", "32-true"]] = {
    "bf16": "bf16-mixed",
    "fp16": "16-mixed",
    "tf32": "32-true",
    "fp32": "32-true",
}
MATMUL_PRECISION = {"bf16": "highest", "fp16": "highest", "tf32": "high", "fp32": "highest"}
ATTENTION_KERNELS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
"""Kernels of `scaled_dot_product_attention` by the word of the recipe."""

# Windows cost microseconds, so no workers are needed; a card left alone on purpose; and Lightning's
# own use of a name that torch has deprecated.
_EXPECTED_WARNINGS = (
    ".*does not have many workers which may be a bottleneck.*",
    ".*GPU available but not used.*",
    ".*isinstance\\(treespec, LeafSpec\\).* is deprecated.*",
)


@dataclass(frozen=True)
class Job:
    """One training run as the recorder asks for it."""

    recipe: Recipe
    size: Mapping[str, Any]
    """The preset of the recipe's size, from the workload's literal."""
    seed: int
    device: torch.device

    @property
    def is_cuda(self) -> bool:
        """Whether it runs on an NVIDIA card."""
        return self.device.type == "cuda"


@dataclass(frozen=True)
class Training:
    """What a workload builds: everything that the trainer and the meter need."""

    module: LightningModule
    batches: IterableDataset[Any]
    """Endless; yields whole batches."""
    unit: str
    count_units: Callable[[Any], int]
    """Units in one batch."""
    flops_per_unit: float | None
    """Floating point operations to train on one unit, by the workload's stated formula."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else the workload says of itself in its hello."""


def read_job(name: str, literal: Mapping[str, Any], environ: Mapping[str, str]) -> Job:
    """The job that the environment describes; by hand, the defaults of the workload.

    Raises:
        WorkloadError: a recipe that cannot be read or run on the device, or no such device.
    """
    asked = environ.get(DEVICE_VARIABLE)
    device = _device(asked)
    try:
        text = environ.get(RECIPE_VARIABLE)
        recipe = _default_recipe(name, literal) if text is None else Recipe.from_json(text)
        seed = int(environ.get(SEED_VARIABLE, "1"))
    except (ValueError, TypeError) as error:
        raise WorkloadError(
            f"{RECIPE_VARIABLE} or {SEED_VARIABLE} is not readable: {error}"
        ) from error
    if recipe.workload != name:
        raise WorkloadError(f"the recipe is for {recipe.workload}, not for {name}")
    if recipe.size not in literal["sizes"]:
        raise WorkloadError(
            f"{name} has no size {recipe.size!r}; it has {', '.join(literal['sizes'])}"
        )
    _check_recipe(recipe, device)
    return Job(recipe, literal["sizes"][recipe.size], seed, device)


def run(
    training: Training, job: Job, channel: Channel, stop: StopRequest, max_steps: int = -1
) -> None:
    """Train until asked to stop, and report all the way from hello to done.

    Args:
        training: what to train.
        job: how and on what.
        channel: where the records go.
        stop: the request to stop.
        max_steps: optimizer steps after which to stop unasked; -1: never.
    """
    recipe = job.recipe
    channel.write(_hello(training, job))
    channel.write(Phase(monotonic_s(), "start"))
    meter = Meter(channel, stop, training.count_units)
    for pattern in _EXPECTED_WARNINGS:
        warnings.filterwarnings("ignore", message=pattern)
    logging.getLogger("lightning.pytorch.utilities.rank_zero").addFilter(_is_no_tip)
    trainer = Trainer(
        accelerator="gpu" if job.is_cuda else "cpu",
        devices=1,
        precision=LIGHTNING_PRECISION[recipe.precision],
        accumulate_grad_batches=recipe.accumulate,
        max_epochs=-1,
        max_steps=max_steps,
        callbacks=[meter],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    batches: DataLoader[Any] = DataLoader(training.batches, batch_size=None, num_workers=0)
    with attention_kernel(recipe.attention):
        trainer.fit(training.module, train_dataloaders=batches)
    channel.write(Done(monotonic_s(), meter.units_done, meter.steps_done))


def attention_kernel(attention: str) -> AbstractContextManager[None]:
    """The context in which only the kernel of that name may be used; `auto`: any."""
    if attention in ("auto", "none"):
        return nullcontext()
    kernel: AbstractContextManager[None] = sdpa_kernel(ATTENTION_KERNELS[attention])
    return kernel


def prepare_process(job: Job) -> None:
    """Settings of the whole process: threads and number formats.

    Call it before the first tensor is computed: threads started later take them over.
    """
    torch.manual_seed(job.seed)
    torch.set_float32_matmul_precision(MATMUL_PRECISION[job.recipe.precision])
    torch.set_num_threads(usable_cores())
    if job.is_cuda:
        return
    # Moments of parameters that are rarely touched decay into denormal numbers, on which a CPU is
    # many times slower: the rate would fall with the loss.
    torch.set_flush_denormal(True)


def usable_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _is_no_tip(record: logging.LogRecord) -> bool:
    """Whether a line of Lightning's says something about this run, not about its other products."""
    return "Tip: " not in record.getMessage()


def _hello(training: Training, job: Job) -> Hello:
    recipe = job.recipe
    facts = {
        "flops_per_unit": training.flops_per_unit,
        "precision": LIGHTNING_PRECISION[recipe.precision],
        "matmul_precision": torch.get_float32_matmul_precision(),
        "compile": recipe.compile,
        "checkpointing": recipe.checkpointing,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "lightning": lightning.__version__,
        "python": platform.python_version(),
        "cuda": torch.version.cuda if job.is_cuda else None,
        **training.facts,
    }
    if not job.is_cuda:
        return Hello(monotonic_s(), os.getpid(), training.unit, None, _cpu_name(), facts)
    seen = torch.cuda.get_device_properties(job.device)
    uuid = nvml_uuid(str(seen.uuid), os.environ.get(DEVICE_VARIABLE, ""))
    return Hello(
        monotonic_s(), os.getpid(), training.unit, uuid, seen.name, facts, seen.total_memory
    )


def nvml_uuid(uuid: str, asked: str) -> str:
    """A UUID of CUDA's as NVML spells it.

    Args:
        uuid: of a CUDA device. On a MIG slice its own or, from older runtimes, its card's: CUDA
            does not say which.
        asked: the UUID the recorder gave.
    """
    return asked if asked == f"MIG-{uuid}" else f"GPU-{uuid}"


def _device(asked: str | None) -> torch.device:
    """The device to compute on; the recorder has made all others invisible to CUDA."""
    if asked == "cpu":
        return torch.device("cpu")
    is_available = torch.cuda.is_available()
    if asked is None:
        return torch.device("cuda", 0) if is_available else torch.device("cpu")
    if not is_available:
        build = torch.version.cuda
        why = "this PyTorch has no CUDA" if build is None else f"CUDA {build} of PyTorch finds none"
        raise WorkloadError(f"asked to train on {asked}, but {why}; use the device cpu")
    count = torch.cuda.device_count()
    for index in range(count):
        uuid = str(torch.cuda.get_device_properties(index).uuid)
        if nvml_uuid(uuid, asked) == asked:
            return torch.device("cuda", index)
    if asked.startswith("MIG-") and count == 1:
        # The one slice this process can see, under the UUID of its card: the recorder compares
        # the memory too.
        return torch.device("cuda", 0)
    raise WorkloadError(f"asked to train on {asked}, which CUDA does not offer to this process")


def _check_recipe(recipe: Recipe, device: torch.device) -> None:
    if recipe.precision not in LIGHTNING_PRECISION:
        right = ", ".join(LIGHTNING_PRECISION)
        raise WorkloadError(f"unknown precision {recipe.precision!r}; there is {right}")
    if recipe.attention not in ("auto", "none", *ATTENTION_KERNELS):
        right = ", ".join(("auto", *ATTENTION_KERNELS))
        raise WorkloadError(f"unknown attention {recipe.attention!r}; there is {right}")
    if device.type == "cpu" and recipe.cpu_problem is not None:
        raise WorkloadError(recipe.cpu_problem)


def _default_recipe(name: str, literal: Mapping[str, Any]) -> Recipe:
    values = dict(literal["defaults"])
    values.update(literal["sizes"][values["size"]].get("recipe", {}))
    recipe = Recipe(workload=name, **values)
    sys.stderr.write(f"{RECIPE_VARIABLE} is not set: {recipe.to_json()}\n")
    return recipe


def _cpu_name() -> str:
    """The model of the host CPU, as the kernel names it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123 - one line of many
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
