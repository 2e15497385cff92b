"""What a synthetic recipe costs a synthetic card, and what the card then does."""

import pytest

from heatsoak.launch.catalog import find_workload, make_recipe
from heatsoak.launch.synthetic import SyntheticJob
from heatsoak.profiles.cards import card_profiles
from heatsoak.telemetry.discovery import open_devices


def loaded(card_name="rtx-5090", **options):
    """A synthetic card with the job of a recipe on it, since session time 0."""
    (card,) = open_devices(f"synthetic:{card_name}")
    recipe = make_recipe("synthetic", card.info, options)
    size = find_workload("synthetic").sizes[recipe.size]
    job = SyntheticJob(card, recipe, size)
    job.start(0.0)
    return card, job


def test_a_smaller_model_has_more_tokens_a_second():
    large, small = loaded(size="1B")[0], loaded(size="125M")[0]
    ratio = small.asymptote().rate_per_s / large.asymptote().rate_per_s
    assert ratio == pytest.approx(8.0, rel=1e-6)
    assert small.read(60.0).memory_used_bytes < large.read(60.0).memory_used_bytes


def test_few_tokens_a_step_are_bound_by_memory():
    options = {"size": "1B", "context": 128, "micro_batch": 1}
    card, _ = loaded(**options)
    profile = card_profiles()["rtx-5090"]
    most = profile.bandwidth_bytes_per_s / (36.0 * 1e9 / 128)
    rate = card.asymptote().rate_per_s
    assert 0.5 * most < rate < 0.75 * most
    # Accumulation spares the optimizer's traffic.
    assert loaded(**options, accumulate=8)[0].asymptote().rate_per_s > 2 * rate


def test_memory_bound_work_follows_the_clock_little():
    many = loaded(size="1B")[0]
    few = loaded(size="1B", context=128, micro_batch=1)[0]

    def drop(card):
        early = (card.units_done(60.0) - card.units_done(30.0)) / 30.0
        return 1 - card.asymptote().rate_per_s / early

    assert drop(many) > 3 * abs(drop(few))


def test_the_size_fits_the_card():
    assert loaded("rtx-5080")[0].read(60.0).memory_used_bytes < 16 * 1024**3
    assert make_recipe("synthetic", loaded("rtx-5080")[0].info, {}).size == "125M"


def test_the_job_counts_what_the_card_did():
    card, job = loaded()
    job.poll(0.0)
    records = [r for r in job.poll(120.0) if hasattr(r.record, "loss")]
    assert [r.t_s for r in records] == [float(t) for t in range(1, 121)]
    steps = records[-1].record
    assert steps.units_done == card.units_done(120.0) > 0
    assert steps.loss is None
