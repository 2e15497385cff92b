"""Every figure of the economics in one line each: how it is computed, and where that is from."""

from __future__ import annotations

from dataclasses import dataclass

ARTICLE = (
    "Workstation AI ROI Favors RTX PRO 5000 for 13B Fine-Tunes and RTX 5090 for Perf-per-Dollar, "
    "2026"
)


@dataclass(frozen=True, slots=True)
class Formula:
    """How one figure comes about."""

    title: str
    formula: str
    source: str


FORMULAS: dict[str, Formula] = {
    "units_per_s_per_price": Formula(
        "perf/$", "sustained rate / invoiced price of the cards of the job", ARTICLE
    ),
    "units_per_s_per_w": Formula(
        "perf/W", "sustained rate / sustained power of the cards of the job", ARTICLE
    ),
    "units_per_joule": Formula(
        "units per joule", "units / joules, both over the frozen window", ARTICLE
    ),
    "kwh_per_million": Formula(
        "energy", "J per unit / 3.6 x PUE, kWh at the meter", "PUE: ISO/IEC 30134-2"
    ),
    "energy_per_million": Formula(
        "cost of energy", "J per unit / 3.6 x PUE x price of a kWh", ARTICLE
    ),
    "capital_per_million": Formula(
        "cost of capital",
        "(price x (1 - residual) + support x years) / (rate x 8760 x 3600 x years x utilisation)",
        "depreciation by units of production",
    ),
    "tco": Formula(
        "TCO",
        "price - residual + energy + support + staff + downtime; "
        "kWh a year = 8.76 x (u x W + (1 - u) x idle W) x PUE; nothing is discounted",
        ARTICLE,
    ),
    "total_per_million": Formula(
        "all-in cost", "TCO / (rate x 8760 x 3600 x years x utilisation)", ARTICLE
    ),
    "cloud": Formula(
        "cloud break-even",
        "(price - residual + support + staff + idle energy) / (cloud rate - energy of an hour)",
        "owning costs as much as renting; a rented hour is taken to do what one of this card does",
    ),
    "faults": Formula(
        "faults",
        "interval = sqrt(2 x checkpoint x h per fault / N); lost h = N x h / (h per fault) x "
        "(detection + restart + interval / 2)",
        "Young, CACM 17, 1974; Daly, FGCS 22, 2006; first order",
    ),
    "scaling": Formula(
        "scaling",
        "efficiency = T_N / (N x T_1); marginal = (T_N - T_M) / ((N - M) x T_1)",
        ARTICLE,
    ),
    "spent": Formula("run and epoch", "J / 3.6e6 x PUE x price of a kWh", "J by the counter"),
}
"""By name in `economics` of `heatsoak-result/1`."""
