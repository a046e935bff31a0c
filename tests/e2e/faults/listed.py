"""All faults by name. The quick ones take less than about two seconds."""

from __future__ import annotations

from tests.e2e.faults import kills, room, starting, stopping
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
FAULTS: dict[str, Fault] = {fault.__name__: fault for fault in QUICK + SLOW}
