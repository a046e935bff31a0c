"""Settings: one flat list of names, each value typed, checked and aware of where it came from.

    default  <  --dev  <  file  <  environment  <  flag

The file is `surehook.toml` in the current folder, or the one `SUREHOOK_CONFIG` names; the environment
spells a setting `SUREHOOK_` and its name in capitals; `--dev` is only another set of defaults, so that
whatever was written down on purpose still wins. An empty environment variable counts as not set.

A name nobody knows, a value out of range, or a setting whose feature this version does not have stops
the program at its start (SettingsError) and says what would be accepted: a setting is never ignored.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from surehook import config_kinds as kinds
from surehook import config_reach as reach
from surehook.config_kinds import Kind
from surehook.core.errors import SettingsError

PREFIX = "SUREHOOK_"
FILE_NAME = "surehook.toml"
FILE_VARIABLE = "SUREHOOK_CONFIG"


class Settings(Struct, frozen=True, kw_only=True):
    """Everything a process can be told. Defaults are those of a small machine with nothing set up."""

    database_url: str = "sqlite:///surehook.db"
    redis_url: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    role: str = "all"
    lane: str = "both"
    processes: int = 1
    connections: int = 4_096
    bodies_mb: int = 64
    broker_url: str | None = None
    api_key: str | None = None
    url: str | None = None
    tenant: str | None = None
    allow_http: bool = False
    allow_networks: tuple[str, ...] = ()
    tenant_networks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    deny_networks: tuple[str, ...] = ()
    nat64_prefixes: tuple[str, ...] = ()
    own_hosts: tuple[str, ...] = ()
    ca_file: str | None = None
    proxy: str | None = None
    metrics_open: bool = False
    log_level: str = "info"
    log_format: str = "auto"
    retention_days: int = 30
    body_retention_days: int = 30
    disk_floor_mb: int = 64
    slots_first: int = 512
    slots_retry: int = 512
    endpoint_slots: int = 32
    waiting_events: int = 20_000
    memory_deliveries: int = 100_000
    memory_mb: int = 64
    record_window_ms: int = 5
    record_rows: int = 512
    grace_s: int = 10
    origins: dict[str, str] = field(default_factory=dict)
    file: str | None = None  # the settings file that was read, or None

    @classmethod
    def load(
        cls,
        *,
        env: Mapping[str, str] | None = None,
        file: str | os.PathLike[str] | None = None,
        flags: Mapping[str, Any] | None = None,
        dev: bool = False,
    ) -> Settings:
        """Gather the settings of this process.

        env    the environment; None: the real one
        file   the settings file, which must exist; None: what SUREHOOK_CONFIG names, else surehook.toml
               in the current folder where there is one
        flags  values given on the command line by setting name; None values were not given
        dev    start from the defaults of `serve --dev`

        Raises SettingsError naming the key, the place and what is accepted.
        """
        env = os.environ if env is None else env
        path = _find_file(env, file)
        chosen: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for name, raw, origin in _given(env, path, flags or {}, dev):
            chosen[name] = _read(name, raw, origin)
            origins[name] = origin
        return cls(**chosen, origins=origins, file=None if path is None else str(path))

    def origin(self, name: str) -> str:
        """Where a value came from: `default`, `--dev`, `file NAME`, `environment NAME` or `flag --name`."""
        return self.origins.get(name, "default")

    @property
    def server_url(self) -> str:
        """Where commands look for the server: `url`, else the address this machine would serve on."""
        if self.url is not None:
            return self.url
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 (not a bind)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def is_sqlite(self) -> bool:
        """Whether the ledger is a file, which one process serves at a time."""
        return self.database_url.startswith("sqlite:")

    @property
    def database_path(self) -> Path:
        """The SQLite file, relative to the current folder unless the URL has four slashes."""
        return Path(self.database_url.removeprefix("sqlite:///"))

    def shown(self, name: str) -> str:
        """A value as people may see it: secrets are redacted, absent ones are empty."""
        value = getattr(self, name)
        if value is None:
            return ""
        if name in ("database_url", "redis_url"):
            return kinds.without_password(value)
        if BY_NAME[name].secret:
            return f"(set, {len(value)} characters)"
        if isinstance(value, bool):
            return "1" if value else "0"
        if isinstance(value, dict):
            return reach.shown_by_tenant(value)
        return ",".join(value) if isinstance(value, tuple) else str(value)

    def __repr__(self) -> str:
        """Redacted: settings end up in logs."""
        return "Settings(" + ", ".join(f"{s.name}={self.shown(s.name)}" for s in SETTINGS) + ")"


class Setting(Struct, frozen=True):
    """One line of the list; docs/configuration.md gives the reason of each default."""

    name: str
    kind: Kind
    unit: str
    meaning: str
    secret: bool = False

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


# -- the list -------------------------------------------------------------------------------------------

SETTINGS: tuple[Setting, ...] = (
    Setting("database_url", kinds.DATABASE, "URL", "where the ledger is kept"),
    Setting("redis_url", kinds.REDIS, "URL", "where processes share what they know of endpoints"),
    Setting("host", kinds.HOST, "address", "address to listen on"),
    Setting("port", kinds.whole(0, 65_535), "port", "port to listen on; 0 lets the system choose"),
    Setting("role", kinds.one_of("all", "api", "worker", "console"), "word", "what this process does"),
    Setting("lane", kinds.one_of("both", "first", "retry"), "word", "the lane that a worker delivers"),
    Setting("processes", kinds.whole(1, 64), "processes", "how many processes share the port and the work"),
    Setting(
        "connections",
        kinds.whole(16, 60_000),
        "connections",
        "callers that may be connected at once, at most",
    ),
    Setting("bodies_mb", kinds.whole(16, 65_536), "MiB", "bodies of requests that are being read, at most"),
    Setting("broker_url", kinds.BROKER, "URL", "RabbitMQ that brings ready work to workers", True),
    Setting(
        "api_key", kinds.KEY, "key", "bootstrap admin key of the server, and the key that commands send", True
    ),
    Setting("url", kinds.URL, "URL", "where commands find the server; absent: host and port of this list"),
    Setting("tenant", kinds.TENANT, "name", "tenant that commands mean when none is given"),
    Setting("allow_http", kinds.FLAG, "switch", "let endpoints have http:// addresses"),
    Setting(
        "allow_networks", kinds.NETWORKS, "CIDRs", "networks that may be reached although they are not public"
    ),
    Setting(
        "tenant_networks",
        kinds.TENANT_NETWORKS,
        "CIDRs",
        "networks that one tenant's endpoints may reach as well",
    ),
    Setting(
        "deny_networks", kinds.NETWORKS, "CIDRs", "networks that are never reached, whatever else allows them"
    ),
    Setting(
        "nat64_prefixes", kinds.PREFIXES, "CIDRs", "own NAT64 prefixes: judged by the IPv4 address inside"
    ),
    Setting("own_hosts", kinds.HOSTS, "names", "own names of this server, which no endpoint may point at"),
    Setting("ca_file", kinds.FILE, "file", "authorities that are trusted beside the system's, as PEM"),
    Setting("proxy", kinds.PROXY, "URL", "egress proxy that all requests leave through, by CONNECT", True),
    Setting("metrics_open", kinds.FLAG, "switch", "serve /metrics without a key"),
    Setting("log_level", kinds.LEVEL, "word", "least important line that is logged"),
    Setting("log_format", kinds.FORMAT, "word", "form of log lines; auto: console on a terminal, else json"),
    Setting(
        "retention_days", kinds.whole(1, 3_650), "days", "how long finished events and attempts are kept"
    ),
    Setting(
        "body_retention_days", kinds.whole(1, 3_650), "days", "how long bodies of finished events are kept"
    ),
    Setting(
        "disk_floor_mb", kinds.whole(0, 1_048_576), "MiB", "free disk below which events are refused (503)"
    ),
    Setting(
        "slots_first", kinds.whole(1, 16_384), "requests", "requests in flight in the first lane, at most"
    ),
    Setting(
        "slots_retry", kinds.whole(1, 16_384), "requests", "requests in flight in the retry lane, at most"
    ),
    Setting(
        "endpoint_slots", kinds.whole(1, 4_096), "requests", "requests in flight to one endpoint, at most"
    ),
    Setting(
        "waiting_events", kinds.whole(1, 1_000_000), "events", "events waiting for their commit, at most"
    ),
    Setting("memory_deliveries", kinds.whole(100, 10_000_000), "deliveries", "deliveries in memory, at most"),
    Setting("memory_mb", kinds.whole(1, 65_536), "MiB", "request bodies in memory, at most"),
    Setting("record_window_ms", kinds.whole(0, 1_000), "ms", "how long a result waits for its neighbours"),
    Setting("record_rows", kinds.whole(1, 10_000), "results", "results recorded in one transaction, at most"),
    Setting("grace_s", kinds.whole(0, 600), "s", "time for requests in flight to finish at shutdown"),
)

BY_NAME: dict[str, Setting] = {setting.name: setting for setting in SETTINGS}

# Known words of later versions: refused with the reason, so that nobody believes they are in force.
UNAVAILABLE: dict[str, str] = {
    "encryption_key": "this version does not encrypt signing secrets at rest; protect the database file instead",
}

# `serve --dev`: receivers on this very machine, without certificates.
DEV_DEFAULTS: dict[str, str] = {"allow_http": "1", "allow_networks": "127.0.0.0/8,::1/128"}


# -- gathering ------------------------------------------------------------------------------------------


def _given(
    env: Mapping[str, str], path: Path | None, flags: Mapping[str, Any], dev: bool
) -> Iterator[tuple[str, Any, str]]:
    """Every (name, raw value, origin), weakest first."""
    if dev:
        for name, value in DEV_DEFAULTS.items():
            yield name, value, "--dev"
    if path is not None:
        for name, value in _parse_file(path).items():
            yield _known(name, name, place=str(path)), value, f"file {path}"
    for variable in sorted(env):
        if variable.startswith(PREFIX) and variable != FILE_VARIABLE and env[variable] != "":
            name = variable.removeprefix(PREFIX).lower()
            yield _known(name, variable, place="the environment"), env[variable], f"environment {variable}"
    for name, value in flags.items():
        if value is not None:
            # The server's address is not `--url`, which could mean an endpoint's.
            flag = "server" if name == "url" else name.replace("_", "-")
            yield name, value, f"flag --{flag}"


def _find_file(env: Mapping[str, str], file: str | os.PathLike[str] | None) -> Path | None:
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


def _parse_file(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            str(path), f"not valid TOML: {error}", hint='lines look like: port = 8080, host = "127.0.0.1"'
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(str(path), f"cannot be read: {error}") from None


def _known(name: str, written: str, *, place: str) -> str:
    if name in UNAVAILABLE:
        raise SettingsError(written, f"not available: {UNAVAILABLE[name]}", hint=f"remove it from {place}")
    if name not in BY_NAME:
        from difflib import get_close_matches

        near = get_close_matches(name, BY_NAME, n=1, cutoff=0.6)
        hint = "`surehook config show` lists every setting"
        if near:
            in_env = written.startswith(PREFIX)
            hint = f"did you mean {BY_NAME[near[0]].variable if in_env else near[0]}?"
        raise SettingsError(written, f"there is no such setting (in {place})", hint=hint)
    return name


def _read(name: str, raw: Any, origin: str) -> Any:
    setting = BY_NAME[name]
    try:
        return setting.kind.read(_text(raw, setting.kind))
    except (ValueError, KeyError):
        shown = "the value" if setting.secret or setting.kind in kinds.URLS else repr(raw)
        written = origin.partition(" ")[2] if origin.startswith(("environment", "flag")) else name
        where = f" (in {origin.removeprefix('file ')})" if origin.startswith("file") else ""
        hint = f"expected {setting.kind.accepted}"
        if setting.kind in kinds.WITH_PASSWORD:
            hint += kinds.ENCODING_HINT
        raise SettingsError(written, f"{shown} is not accepted{where}", hint=hint) from None


def _text(raw: Any, kind: Kind) -> str:
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


def _is_texts(raw: Any) -> bool:
    return isinstance(raw, list | tuple) and all(isinstance(part, str) for part in raw)
