"""Starts that must not succeed: each ends with a sentence, a status, and nothing touched."""

from __future__ import annotations

import os
import socket
import sqlite3
from pathlib import Path
from typing import Any

from lab.bench.server import KEY
from tests.e2e.calling import Caller
from tests.e2e.faults.place import Place, check_refusal, command


def second_server(place: Place) -> dict[str, Any]:
    """A second server on the same file refuses and names the process that has it, by whatever name the file goes."""
    with place.shop() as shop:
        pid = str(shop.server.pid)
        check_refusal(command("serve", folder=place.folder), pid, "already")
        elsewhere = place.folder / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "other.db").symlink_to(shop.database)
        url = f"sqlite:///{elsewhere / 'other.db'}"
        check_refusal(command("serve", folder=place.folder, SUREHOOK_DATABASE_URL=url), pid, "already")
        event = shop.publish(shop.tenant())
        assert shop.api.get(f"/v1/events/{event}")["id"] == event, "the first server goes on"
        shop.server.kill()
        shop.start()  # a killed server's lock does not outlive it
        check_refusal(command("serve", folder=place.folder), str(shop.server.pid))
    return {}


def port_taken(place: Place) -> dict[str, Any]:
    """A taken port is named, and the ledger is not made."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        check_refusal(command("serve", folder=place.folder, SUREHOOK_PORT=port), port, "taken")
    assert not (place.folder / "surehook.db").exists()
    return {}


def unusable_files(place: Place) -> dict[str, Any]:
    """A file that is no ledger of ours is refused by name and left as it was."""
    files: dict[str, bytes] = {
        "garbage.db": b"this is no database, whatever it is called\n" * 500,
        "short.db": b"SQLite format 3\x00" + b"\x00" * 40,
        "torn.db": _torn(place.folder / "torn.db"),
        "stranger.db": _stranger(place.folder / "stranger.db"),
    }
    for name, content in files.items():
        path = place.folder / name
        path.write_bytes(content)
        check_refusal(
            command("serve", folder=place.folder, SUREHOOK_DATABASE_URL=f"sqlite:///{path}"), "database"
        )
        assert path.read_bytes() == content, f"{name} was changed"
    (place.folder / "folder.db").mkdir()
    for path in (place.folder / "folder.db", place.folder / "nowhere" / "x.db"):
        check_refusal(
            command("serve", folder=place.folder, SUREHOOK_DATABASE_URL=f"sqlite:///{path}"), str(path.parent)
        )
    assert not (place.folder / "nowhere").exists()
    return {"files": len(files) + 2}


def newer_ledger(place: Place) -> dict[str, Any]:
    """A ledger of a later version is refused, not misread."""
    with place.shop():
        pass
    with sqlite3.connect(place.folder / "surehook.db") as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    connection.close()
    check_refusal(command("serve", folder=place.folder), "9999")
    return {}


def bad_settings(place: Place) -> dict[str, Any]:
    """A setting that is unknown, weak or out of range stops the start and says what would do."""
    cases: list[tuple[dict[str, str], tuple[str, ...]]] = [
        ({"SUREHOOK_DATABSE_URL": "x"}, ("SUREHOOK_DATABSE_URL", "did you mean", "SUREHOOK_DATABASE_URL")),
        ({"SUREHOOK_API_KEY": "short"}, ("SUREHOOK_API_KEY", "16")),
        ({"SUREHOOK_API_KEY": "with a blank in the middle"}, ("SUREHOOK_API_KEY",)),
        ({"SUREHOOK_PORT": "99999"}, ("SUREHOOK_PORT",)),
        ({"SUREHOOK_ALLOW_NETWORKS": "127.0.0.1/8"}, ("SUREHOOK_ALLOW_NETWORKS",)),
        ({"SUREHOOK_ALLOW_HTTP": "maybe"}, ("SUREHOOK_ALLOW_HTTP",)),
        ({"SUREHOOK_DATABASE_URL": "mysql://x/y"}, ("SUREHOOK_DATABASE_URL",)),
        ({"SUREHOOK_HOST": "203.0.113.1"}, ("203.0.113.1",)),
    ]
    for settings, says in cases:
        shown = check_refusal(command("serve", folder=place.folder, **settings), *says)
        if "SUREHOOK_API_KEY" in settings:
            assert settings["SUREHOOK_API_KEY"] not in shown, "a key is never printed"
    (place.folder / "surehook.toml").write_text("prot = 8080\n")
    check_refusal(command("serve", folder=place.folder), "prot", "did you mean", "port")
    assert not (place.folder / "surehook.db").exists()
    return {"settings": len(cases) + 1}


def first_key(place: Place) -> dict[str, Any]:
    """Without a key a server makes one for its empty ledger, prints it once, and keeps it over a restart."""
    with place.shop(SUREHOOK_API_KEY="") as shop:
        (line,) = [line for line in shop.log.splitlines() if line.split()[:1] == ["key"]]
        key = line.split()[1]
        assert len(key) >= 16 and key != KEY
        shop.server.stop()
        shop.start()
        assert shop.log.count(f"key       {key}") == 1
        caller = Caller(shop.server.port, key)
        assert caller.ask("GET", "/v1/tenants").status == 200
        assert shop.api.ask("GET", "/v1/tenants").status == 401
        caller.close()
        assert key.encode() not in b"".join(p.read_bytes() for p in place.folder.glob("surehook.db*"))
    return {}


def _torn(path: Path) -> bytes:
    """The first half of a ledger."""
    folder = path.parent / "whole"
    folder.mkdir()
    ended = command("migrate", "up", folder=folder)
    assert ended.returncode == 0, ended
    return (folder / "surehook.db").read_bytes()[: 3 * 4096]


def _stranger(path: Path) -> bytes:
    """Somebody else's database."""
    with sqlite3.connect(path) as connection:
        connection.execute("create table event (id integer primary key, name text)")
        connection.execute("insert into event (name) values ('theirs')")
    connection.close()
    content = path.read_bytes()
    os.unlink(path)
    return content
