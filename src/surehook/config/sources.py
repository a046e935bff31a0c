"""The places a setting may be given in, and which of them wins.

    default  <  --dev  <  file  <  environment  <  flag

The file is `surehook.toml` in the current folder, or the one `SUREHOOK_CONFIG` names; the environment
spells a setting `SUREHOOK_` and its name in capitals; `--dev` is only another set of defaults, so that
whatever was written down on purpose still wins. An empty environment variable counts as not set.

An unknown name, a value out of range, or a setting whose feature this version does not have stops
the program at its start (SettingsError) and says what would be accepted: a setting is never ignored.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from surehook.config import kinds
from surehook.config.kinds import SettingKind
from surehook.config.setting import PREFIX, Setting
from surehook.core.errors import SettingsError

FILE_NAME = "surehook.toml"
FILE_VARIABLE = "SUREHOOK_CONFIG"

# Known words of later versions: refused with the reason, so that nobody believes they are in force.
UNAVAILABLE: dict[str, str] = {
    "encryption_key": "this version does not encrypt signing secrets at rest; protect the database file instead",
}

# `serve --dev`: receivers on this very machine, without certificates.
DEV_DEFAULTS: dict[str, str] = {"allow_http": "1", "allow_networks": "127.0.0.0/8,::1/128"}


Table = Mapping[str, Setting]


def gather(
    table: Table, *, env: Mapping[str, str], file: Path | None, flags: Mapping[str, object], dev: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """All values that were given, and the origin of each, by name. Raises SettingsError."""
    chosen: dict[str, object] = {}
    origins: dict[str, str] = {}
    for name, raw, origin in _given(table, env, file, flags, dev):
        chosen[name] = _read(table[name], raw, origin)
        origins[name] = origin
    return chosen, origins


def find_file(env: Mapping[str, str], file: str | os.PathLike[str] | None) -> Path | None:
    """The settings file, which must exist where it was named. Raises SettingsError."""
    named = file if file is not None else env.get(FILE_VARIABLE)
    if not named:
        usual = Path(FILE_NAME)
        return usual if usual.is_file() else None
    path = Path(named)
    if not path.is_file():
        key = FILE_VARIABLE if file is None else str(path)
        raise SettingsError(
            key, f"there is no settings file {path}", hint="correct the path, or leave it out"
        )
    return path


def _given(
    table: Table, env: Mapping[str, str], path: Path | None, flags: Mapping[str, object], dev: bool
) -> Iterator[tuple[str, object, str]]:
    """Every (name, raw value, origin), weakest first."""
    if dev:
        for name, text in DEV_DEFAULTS.items():
            yield name, text, "--dev"
    if path is not None:
        for name, value in _parse_file(path).items():
            yield _known(table, name, name, place=str(path)), value, f"file {path}"
    for variable in sorted(env):
        if variable.startswith(PREFIX) and variable != FILE_VARIABLE and env[variable] != "":
            name = variable.removeprefix(PREFIX).lower()
            yield (
                _known(table, name, variable, place="the environment"),
                env[variable],
                f"environment {variable}",
            )
    for name, given in flags.items():
        if given is not None:
            # The server's address is not `--url`, which could mean an endpoint's.
            flag = "server" if name == "url" else name.replace("_", "-")
            yield name, given, f"flag --{flag}"


def _parse_file(path: Path) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            str(path), f"not valid TOML: {error}", hint='lines look like: port = 8080, host = "127.0.0.1"'
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(str(path), f"cannot be read: {error}") from None


def _known(table: Table, name: str, written: str, *, place: str) -> str:
    if name in UNAVAILABLE:
        raise SettingsError(written, f"not available: {UNAVAILABLE[name]}", hint=f"remove it from {place}")
    if name not in table:
        from difflib import get_close_matches

        near = get_close_matches(name, table, n=1, cutoff=0.6)
        hint = "`surehook config show` lists every setting"
        if near:
            in_env = written.startswith(PREFIX)
            hint = f"did you mean {table[near[0]].variable if in_env else near[0]}?"
        raise SettingsError(written, f"there is no such setting (in {place})", hint=hint)
    return name


def _read(setting: Setting, raw: object, origin: str) -> object:
    try:
        return setting.kind.read(_text(raw, setting.kind))
    except (ValueError, KeyError):
        shown = "the value" if setting.secret or setting.kind in kinds.URLS else repr(raw)
        written = origin.partition(" ")[2] if origin.startswith(("environment", "flag")) else setting.name
        where = f" (in {origin.removeprefix('file ')})" if origin.startswith("file") else ""
        hint = f"expected {setting.kind.accepted}"
        if setting.kind in kinds.WITH_PASSWORD:
            hint += kinds.ENCODING_HINT
        raise SettingsError(written, f"{shown} is not accepted{where}", hint=hint) from None


def _text(raw: object, kind: SettingKind[Any]) -> str:
    """A value of the file or the command line as the text that the environment would hold."""
    if isinstance(raw, bool):
        return "1" if raw else "0"
    if isinstance(raw, str | int):
        return str(raw).strip()
    if kind in kinds.LISTED and _is_texts(raw):
        return ",".join(raw)
    if kind is kinds.TENANT_NETWORKS and isinstance(raw, dict):
        return ";".join(f"{tenant}={_text(part, kinds.NETWORKS)}" for tenant, part in raw.items())
    raise ValueError


def _is_texts(raw: object) -> TypeGuard[list[str] | tuple[str, ...]]:
    return isinstance(raw, list | tuple) and all(isinstance(part, str) for part in raw)
