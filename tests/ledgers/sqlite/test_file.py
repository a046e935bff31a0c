"""The file and where it lies."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from surehook.core.errors import LedgerBroken, LedgerFull, LedgerUnavailable, SettingsError
from surehook.ledgers.sqlite import SqliteLedger
from surehook.ledgers.sqlite.file import NETWORK_KINDS, mount_kind
from tests.ledgers.desk import Desk
from tests.ledgers.making import NOW, Maker


async def test_a_second_server_is_refused_and_told_who_has_the_file(runner: Any, tmp_path: Path) -> None:
    first, second = (SqliteLedger(str(tmp_path / "book.db")) for _ in range(2))
    await first.open(now=NOW)
    with pytest.raises(SettingsError, match=f"process {os.getpid()} serves"):
        await second.open(now=NOW)
    await first.close()
    await second.open(now=NOW)
    await second.close()


async def test_a_second_server_is_refused_by_another_name_of_the_file(runner: Any, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "link.db").symlink_to(tmp_path / "book.db")
    first, second = SqliteLedger(str(tmp_path / "book.db")), SqliteLedger(str(elsewhere / "link.db"))
    await first.open(now=NOW)
    with pytest.raises(SettingsError, match=f"process {os.getpid()} serves"):
        await second.open(now=NOW)
    await first.close()


async def test_beside_another_programs_file_nothing_is_left(runner: Any, tmp_path: Path) -> None:
    (tmp_path / "names").write_text("not ours")
    with pytest.raises(SettingsError, match="no SQLite database"):
        await SqliteLedger(str(tmp_path / "names")).open(now=NOW)
    assert os.listdir(tmp_path) == ["names"]


async def test_a_place_that_cannot_be_written_is_told_with_what_to_do(
    runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Any, *args: Any, **kwargs: Any) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SettingsError) as refused:
        await SqliteLedger(str(tmp_path / "book.db")).open(now=NOW)
    assert str(tmp_path) in str(refused.value.hint)


async def test_nobody_else_can_read_a_new_book(runner: Any, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = SqliteLedger(str(tmp_path / "book.db"))
        await ledger.open(now=NOW)
        modes = {name: stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in os.listdir(tmp_path)}
        assert modes == dict.fromkeys(("book.db", "book.db-lock", "book.db-shm", "book.db-wal"), 0o600)
        await ledger.close()
    finally:
        os.umask(before)


@pytest.mark.parametrize("inline", [True, False])
async def test_below_the_floor_no_new_work_is_taken_but_work_in_hand_is_recorded(
    runner: Any, tmp_path: Path, inline: bool
) -> None:
    path = str(tmp_path / "book.db")
    ledger = SqliteLedger(path, inline=inline)
    await ledger.open(now=NOW)
    desk = await Desk(ledger, Maker()).begin()
    delivery = await desk.hold_one()
    await ledger.close()

    ledger = desk.ledger = SqliteLedger(path, inline=inline, disk_floor_bytes=1 << 62)
    await ledger.open(now=NOW)
    with pytest.raises(LedgerFull):
        await desk.publish()
    await desk.record(desk.make.delivered(delivery))
    assert await desk.state(delivery) == "delivered"
    await ledger.close()


@pytest.mark.parametrize("floor", [0, 1 << 62])
async def test_below_the_floor_a_line_of_history_is_kept_without_what_the_answer_said(
    runner: Any, tmp_path: Path, floor: int
) -> None:
    path = str(tmp_path / "book.db")
    ledger = SqliteLedger(path)
    await ledger.open(now=NOW)
    desk = await Desk(ledger, Maker()).begin()
    delivery, dying = await desk.hold_one(), await desk.hold_one()
    await ledger.close()

    ledger = desk.ledger = SqliteLedger(path, disk_floor_bytes=floor)
    await ledger.open(now=NOW)
    result = desk.make.delivered(delivery)
    assert result.entry is not None
    said = structs.replace(result.entry, status=200, headers=b"x: y\n", body=b"thanks", truncated=False)
    await desk.record(structs.replace(result, entry=said))
    (line,) = await ledger.attempts(delivery.id)
    assert (line.status, line.outcome) == (200, said.outcome)
    kept = (line.headers, line.body, line.truncated)
    assert kept == ((b"x: y\n", b"thanks", False) if floor == 0 else (b"", b"", True))
    await desk.record(structs.replace(desk.make.dead(dying), request_headers=b"{}"))
    letter = await ledger.delivery(dying.id)
    assert letter is not None and letter.request_headers == (b"{}" if floor == 0 else None)
    await ledger.close()


async def test_a_full_disk_is_not_taken_for_a_wrong_path(
    runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def full(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith("book.db"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(LedgerFull, match="No space left"):
        await SqliteLedger(str(tmp_path / "book.db")).open(now=NOW)


async def test_a_file_that_was_replaced_is_not_written_any_more(runner: Any, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    ledger = SqliteLedger(str(path))
    await ledger.open(now=NOW)
    desk = await Desk(ledger, Maker()).begin()
    path.rename(tmp_path / "moved.db")
    path.touch()
    with pytest.raises(LedgerBroken, match="replaced"):
        await desk.publish()
    with pytest.raises(LedgerBroken):
        await ledger.beat(desk.node, 1, now=NOW)
    await ledger.close()


async def test_a_folder_that_is_not_there_is_said(runner: Any, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no folder"):
        await SqliteLedger(str(tmp_path / "nowhere" / "book.db")).open(now=NOW)


async def test_a_closed_book_answers_that_it_is_not_open(runner: Any, tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable):
        await SqliteLedger(str(tmp_path / "book.db")).version()


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/", "ext4"), ("/srv", "ext4"), ("/srv/share", "nfs4"), ("/srv/share/deep/er", "nfs4"), ("/srv/shared", "ext4"),
     ("/with space", "cifs")],
)  # fmt: skip
def test_the_innermost_mount_says_the_kind(tmp_path: Path, folder: str, kind: str) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "30 22 0:44 / /srv/share rw shared:2 - nfs4 server:/x rw\n"
        "31 22 0:45 / /with\\040space rw - cifs //server/x rw\n"
    )
    assert mount_kind(Path(folder), table) == kind


def test_network_file_systems_are_known() -> None:
    assert {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"} <= NETWORK_KINDS
