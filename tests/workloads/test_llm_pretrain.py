"""Real, tiny trainings through Lightning in this process."""

from __future__ import annotations

import gc
import math
import os
import signal

import pytest
import torch

from heatsoak.progress import Done, Hello, Integrity, LineBuffer, Phase, Steps, decode
from heatsoak.recipe import Recipe
from heatsoak_workloads._channel import Channel, StopRequest, WorkloadError
from heatsoak_workloads._data import RandomWindows, english_tokens, trained_tokens
from heatsoak_workloads._meter import WARM_STEPS, Meter
from heatsoak_workloads._transformer import Shape, Transformer, parameter_count
from heatsoak_workloads._workload import Job, read_job, run
from heatsoak_workloads.llm_pretrain import WORKLOAD, build

MICRO = {"layers": 1, "width": 32, "heads": 2, "kv_heads": 1, "ffn": 64, "vocabulary": 256}


@pytest.fixture(autouse=True)
def _process_state():
    """A training takes signals and freezes the collector; give both back."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    gc.unfreeze()


def micro_job(**changes):
    options = {
        "workload": "llm_pretrain",
        "size": "cpu-tiny",
        "context": 32,
        "micro_batch": 2,
        "accumulate": 1,
        "precision": "bf16",
        "attention": "auto",
        "compile": False,
        "checkpointing": False,
        "optimizer": "adamw",
        "settings": {"learning_rate": 3e-3},
    }
    return Job(Recipe(**(options | changes)), MICRO, seed=1, device=torch.device("cpu"))


def train(job, max_steps):
    """The records of a training of `max_steps` steps."""
    read, write = os.pipe()
    try:
        channel = Channel(write)
        torch.manual_seed(job.seed)
        run(build(job), job, channel, StopRequest(channel), max_steps=max_steps)
        return [decode(line) for line in LineBuffer().feed(os.read(read, 1 << 20))]
    finally:
        os.close(read)
        os.close(write)


def test_the_loss_falls_and_the_records_tell_the_whole_run(monkeypatch):
    monkeypatch.setattr("heatsoak_workloads._meter.LOSS_PERIOD_S", 0.0)
    monkeypatch.setattr("heatsoak_workloads._meter.REPORT_PERIOD_S", 0.0)
    records = train(micro_job(), max_steps=60)
    hello, start = records[:2]
    assert isinstance(hello, Hello)
    assert (hello.unit, hello.device_uuid, hello.pid) == ("tokens", None, os.getpid())
    assert hello.facts["attention"] == "flash"
    assert hello.facts["parameters"] == parameter_count(Transformer(Shape(**MICRO), 32))
    assert start.phase == "start"
    phases = [record.phase for record in records if isinstance(record, Phase)]
    assert phases == ["start", "compile", "train", "teardown"]
    steps = [record for record in records if isinstance(record, Steps)]
    assert [step.steps_done for step in steps] == list(range(1, 61))
    assert [step.units_done for step in steps] == [64.0 * n for n in range(1, 61)]
    losses = [step.loss for step in steps]
    assert abs(losses[0] - math.log(256)) < 0.5
    assert sum(losses[-5:]) / 5 < losses[0] - 1.5
    train_at = next(
        i
        for i, r in enumerate(records)
        if r == next(p for p in records if isinstance(p, Phase) and p.phase == "train")
    )
    assert records[train_at - 1].monotonic_s <= records[train_at].monotonic_s
    last_before = [r for r in records[:train_at] if isinstance(r, Steps)][-1]
    assert last_before.steps_done == WARM_STEPS
    assert [r for r in records if isinstance(r, Integrity)][-1].failures == 0
    done = records[-1]
    assert isinstance(done, Done)
    assert (done.units_done, done.steps_done) == (60 * 64.0, 60)


def test_reports_are_at_most_ten_a_second_and_loss_is_read_once_a_second():
    records = train(micro_job(), max_steps=100)
    steps = [record for record in records if isinstance(record, Steps)]
    span_s = steps[-1].monotonic_s - steps[0].monotonic_s
    assert len(steps) <= 10 * span_s + 3
    assert sum(step.loss is not None for step in steps) <= span_s + 1
    assert (steps[-1].units_done, steps[-1].steps_done) == (100 * 64.0, 100)


def test_units_and_weights_do_not_depend_on_accumulation():
    """Four windows a step, at once or in four passes: the same tokens, the same loss."""
    ends = []
    for micro_batch, accumulate in ((4, 1), (1, 4)):
        job = micro_job(micro_batch=micro_batch, accumulate=accumulate, precision="fp32")
        records = train(job, max_steps=5)
        done = records[-1]
        ends.append((done.units_done, done.steps_done))
        first = next(r for r in records if isinstance(r, Steps))
        assert abs(first.loss - math.log(256)) < 0.5
    assert ends[0] == ends[1] == (5 * 4 * 32.0, 5)


def test_equal_seeds_train_alike():
    finals = []
    for _ in range(2):
        records = train(micro_job(), max_steps=3)
        finals.append(next(r.loss for r in records if isinstance(r, Steps)))
    assert finals[0] == finals[1]


def test_a_loss_that_is_no_number_is_an_integrity_failure_and_never_a_loss(monkeypatch):
    monkeypatch.setattr("heatsoak_workloads._meter.LOSS_PERIOD_S", 0.0)
    records = train(micro_job(settings={"learning_rate": 1e30}), max_steps=12)
    integrity = [record for record in records if isinstance(record, Integrity)][-1]
    assert integrity.checks > integrity.failures > 0
    assert "finite" in integrity.text
    assert all(s.loss is None or math.isfinite(s.loss) for s in records if isinstance(s, Steps))


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
@pytest.mark.parametrize("attention", ["flash", "math"])
def test_the_forced_kernel_is_the_one_reported(precision, attention):
    training = build(micro_job(precision=precision, attention=attention))
    assert training.facts["attention"] == attention


def test_checkpointing_and_accumulation_train():
    done = train(micro_job(checkpointing=True, accumulate=2), max_steps=2)[-1]
    assert (done.units_done, done.steps_done) == (2 * 2 * 64.0, 2)


def test_presets_are_as_large_as_they_are_called():
    expected = {"cpu-tiny": 6.0e6, "125M": 125e6, "350M": 358e6, "1B": 973e6}
    for name, size in WORKLOAD["sizes"].items():
        shape = Shape(**{key: size[key] for key in MICRO})
        with torch.device("meta"):
            parameters = parameter_count(Transformer(shape, 64))
        assert parameters == pytest.approx(expected[name], rel=0.02)
        tokens = size["recipe"]["context"] * size["recipe"]["micro_batch"]
        kept = (30 * shape.width + 8 * shape.ffn) * shape.layers * tokens
        needed_gib = 1.05 * (18 * parameters + kept) / 2**30 + 1.0
        assert size["memory_gib"] == pytest.approx(needed_gib, rel=0.04)


def test_autograd_keeps_what_the_memory_estimate_says():
    """30 width + 8 ffn bytes a token and layer, besides the 16-bit copies of the weights."""

    def kept_bytes(layers):
        shape = Shape(**{**MICRO, "layers": layers, "width": 64})
        model = Transformer(shape, 64)
        own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), model.cos)}
        kept = {}

        def keep(tensor):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        tokens = torch.zeros(4, 64, dtype=torch.long)
        hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
        with hooks, torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(tokens)
        assert logits.requires_grad
        return sum(kept.values()) - 2 * parameter_count(model)

    per_token = (kept_bytes(3) - kept_bytes(2)) / (4 * 64)
    assert per_token == pytest.approx(30 * 64 + 8 * MICRO["ffn"], rel=0.05)


def test_windows_are_the_text_seeded_and_counted_by_targets():
    text = english_tokens()
    assert len(text) > 400_000
    assert b"object" in bytes(text[:20_000].tolist())

    def draw(seed):
        windows = RandomWindows(text, context=16, micro_batch=3, seed=seed, is_pinned=False)
        batches = iter(windows)
        return torch.stack([next(batches) for _ in range(4)])

    first = draw(1)
    assert torch.equal(first, draw(1))
    assert not torch.equal(first, draw(2))
    assert first[0].shape == (3, 17)
    assert trained_tokens(first[0]) == 48
    assert bytes(first[0, 0].tolist()) in bytes(text.tolist())


def test_a_context_longer_than_the_text_is_refused():
    with pytest.raises(WorkloadError, match="at most 9"):
        RandomWindows(
            torch.zeros(10, dtype=torch.uint8), context=10, micro_batch=1, seed=1, is_pinned=False
        )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"precision": "fp16"}, "needs a GPU"),
        ({"precision": "int3"}, "there is bf16"),
        ({"attention": "cudnn"}, "needs a GPU"),
        ({"attention": "sparse"}, "there is auto"),
        ({"size": "9T"}, "cpu-tiny"),
        ({"workload": "other"}, "is for other"),
    ],
)
def test_a_recipe_that_cannot_run_here_is_refused_in_one_line(changes, said):
    environ = {"HEATSOAK_DEVICE": "cpu", "HEATSOAK_RECIPE": micro_job(**changes).recipe.to_json()}
    with pytest.raises(WorkloadError, match=said) as error:
        read_job("llm_pretrain", WORKLOAD, environ)
    assert "\n" not in str(error.value)


def test_a_card_that_cuda_does_not_offer_is_refused():
    with pytest.raises(WorkloadError, match="GPU-0000"):
        read_job("llm_pretrain", WORKLOAD, {"HEATSOAK_DEVICE": "GPU-0000"})


def test_the_meter_stops_the_trainer_after_the_batch_under_way():
    channel = Channel(None)
    stop = StopRequest(channel)
    job = micro_job()
    torch.manual_seed(1)
    training = build(job)
    counted = []

    def count(batch):
        counted.append(batch)
        if len(counted) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return trained_tokens(batch)

    training = type(training)(**{**vars(training), "count_units": count})
    run(training, job, channel, stop)
    assert stop.is_set
    assert len(counted) == 3
    assert issubclass(Meter, object)
