"""All faults by name. The quick ones take less than about two seconds; fleets need servers, and the machine for themselves."""

from __future__ import annotations

from tests.e2e.faults import kills, machines, nodes, room, starting, stopping
from tests.e2e.faults.place import Fault

QUICK: tuple[Fault, ...] = (starting.port_taken, starting.newer_ledger, starting.first_key)
SLOW: tuple[Fault, ...] = (
    kills.kill9,
    kills.kill9_while_configuring,
    stopping.sigterm,
    stopping.sigterm_with_a_hanging_receiver,
    stopping.second_signal,
    stopping.no_false_202_while_stopping,
    stopping.freeze,
    starting.second_server,
    starting.unusable_files,
    starting.bad_settings,
    room.disk_floor,
    room.disk_full,
    room.backup_under_load,
    room.no_file_descriptors,
)
FLEETS: tuple[Fault, ...] = (
    machines.postgres_stop,
    machines.commit_cut,
    machines.rabbit_kill,
    machines.rabbit_stands_still,
    machines.queue_delete,
    machines.redis_flush,
    machines.redis_restart,
    nodes.node_kill,
    nodes.node_freeze,
)


def name_of(fault: Fault) -> str:
    """`node-kill`, as a command line has it."""
    return fault.__name__.replace("_", "-")


FAULTS: dict[str, Fault] = {name_of(fault): fault for fault in QUICK + SLOW + FLEETS}
GROUPS: dict[str, list[str]] = {
    "alone": [name_of(fault) for fault in QUICK + SLOW],
    "fleet": [name_of(fault) for fault in FLEETS],
}
# In a campaign, 99 of a hundred waits of a kind are at most so long, in seconds.
P99_S = {"rescued_s": nodes.RESCUED_S, "seen_s": nodes.SEEN_S, "again_s": nodes.AGAIN_S}
