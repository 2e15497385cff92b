"""Several cards, several processors: how they are joined, and what does not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.doctor.finding import Finding, ok, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.doctor.machine import Machine
    from heatsoak.telemetry.surroundings import CardPair

_FAR = ("node", "sockets")
_ROUTES = {
    "board": "are on one board", "switch": "share a PCIe switch",
    "switches": "are behind PCIe switches", "host bridge": "meet at the host bridge (PHB)",
    "node": "meet within a NUMA node (NODE)", "sockets": "meet between the processors (SYS)",
}  # fmt: skip


def peers(machine: Machine) -> Iterator[Finding]:
    """Whether cards can read each other's memory, and over which way."""
    asked = {card.info.device_id for card in machine.asked_boards}
    pairs = [pair for pair in machine.pairs if len(asked) < 2 or asked >= {pair.first, pair.second}]
    if not pairs:
        return
    linked = [pair for pair in pairs if pair.has_nvlink]
    blocked = [pair for pair in pairs if pair.peer_status not in (None, "ok")]
    if linked:
        yield ok("nvlink", "NVLink", f"NVLink joins {_listed(linked)}")
    elif any(pair.has_nvlink is None for pair in pairs):
        yield unknown("nvlink", "NVLink", "the driver does not say whether cards are joined by it")
    else:
        yield Finding(
            "nvlink", "info", None, "no NVLink",
            f"no NVLink joins {_listed(pairs)}; what they exchange goes over PCIe",
            "data-parallel training of large models, and sharding more so",
        )  # fmt: skip
    if blocked:
        yield Finding(
            "peers", "warning" if len(asked) > 1 else "info", None, "no peer-to-peer",
            f"{_listed(blocked)} cannot read each other's memory: {blocked[0].peer_status}",
            "what they exchange goes through the host's memory, which costs scaling",
            "measure the scaling before buying another; only some cards and boards support it",
        )  # fmt: skip
    elif any(pair.peer_status is None for pair in pairs):
        yield unknown("peers", "peer-to-peer", "the driver does not say it")
    else:
        yield ok("peers", "peer-to-peer", f"{_listed(pairs)} can read each other's memory")
    for pair in pairs:
        if pair.route in _FAR and not pair.has_nvlink:
            yield Finding(
                "route", "info", None, "far apart",
                f"cards {pair.first} and {pair.second} {_ROUTES[pair.route]}",
                "what they exchange, by the latency and width of that way",
                "put cards that work together under one root port, if the board has a choice",
            )  # fmt: skip


def generations(machine: Machine) -> Iterator[Finding]:
    """Whether cards of several generations or models would work together."""
    cards = machine.asked_boards if len(machine.asked_boards) > 1 else machine.boards
    found = {c.info.compute_capability for c in cards if c.info.compute_capability is not None}
    models = {c.info.name for c in cards}
    if len(models) > 1:
        named = ", ".join(f"{c.info.device_id} {c.info.name}" for c in cards)
        what = f"{len(found)} generations" if len(found) > 1 else f"{len(models)} models"
        yield Finding(
            "generations", "warning" if len(machine.asked_boards) > 1 else "info", None,
            "mixed cards", f"the cards are of {what}: {named}",
            "a job on all of them goes at the pace of the slowest"
            + (", with the kernels of the oldest" if len(found) > 1 else ""),
            "soak them as replicas, each for itself; do not mix them in one job",
        )  # fmt: skip
    elif len(cards) > 1:
        yield ok("generations", "cards of one model", "all cards are of one model")


def numa(machine: Machine) -> Iterator[Finding]:
    """Whether this process may run near the card."""
    nodes = dict(machine.host.node_cores)
    if len(nodes) < 2:
        return
    for card in machine.boards:
        info = card.info
        if info.numa_node is None:
            yield unknown("numa", "the card's NUMA node", "the kernel does not say it",
                          info.device_id)  # fmt: skip
        elif info.numa_node not in machine.host.usable_nodes:
            yield Finding(
                "numa", "warning", info.device_id, "wrong NUMA node",
                f"it is at NUMA node {info.numa_node}, and this process may run only on "
                f"{', '.join(map(str, machine.host.usable_nodes))}",
                "every copy to the card goes through the other processor",
                f"start with numactl --cpunodebind={info.numa_node} --membind={info.numa_node}",
            )  # fmt: skip
        elif len(machine.host.usable_nodes) > 1:
            yield Finding(
                "numa", "info", info.device_id, f"NUMA node {info.numa_node} of {len(nodes)}",
                f"it is at NUMA node {info.numa_node}, and this process may run on any",
                "copies from memory of another node; the kernel decides which",
                f"numactl --cpunodebind={info.numa_node} --membind={info.numa_node} keeps it near",
            )  # fmt: skip
        else:
            yield ok("numa", "NUMA node", f"this process runs on its node {info.numa_node}",
                     info.device_id)  # fmt: skip


def asleep(machine: Machine) -> Iterator[Finding]:
    """Cards that the kernel has switched off; they are left so."""
    sleeping = [card.bus_id for card in machine.present if card.is_asleep]
    if sleeping:
        yield Finding(
            "asleep", "info", None, "asleep",
            f"the NVIDIA card at {', '.join(sleeping)} is asleep and was not woken",
            "", "name it with -d to look at it; that wakes it",
        )  # fmt: skip


def _listed(pairs: list[CardPair]) -> str:
    names = dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second))
    return f"cards {', '.join(names)}"
