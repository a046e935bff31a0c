"""Kinds of settings: readers that make a value of the text of the environment, the file or a flag, or refuse it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct

from surehook.config import reach
from surehook.core.outbox_tables import is_table

if TYPE_CHECKING:
    from urllib.parse import SplitResult

API_KEY_CHARS_MIN = 16
_IN_QUERY = re.compile(r"([?&]\w*password=)[^&]*", re.IGNORECASE)  # libpq takes it there as well


T = TypeVar("T")


class SettingKind(Struct, Generic[T], frozen=True):
    """A way to read the text of a setting, and to show its value. `read` raises ValueError for what is not `accepted`."""

    accepted: str
    read: Callable[[str], T]
    show: Callable[[T], str] = str


def whole(low: int, high: int) -> SettingKind[int]:
    def read(text: str) -> int:
        value = int(text.replace("_", ""))
        if not low <= value <= high:
            raise ValueError
        return value

    return SettingKind(f"a whole number from {low:,} to {high:,}", read)


def one_of(*words: str) -> SettingKind[str]:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise ValueError
        return text.lower()

    return SettingKind("one of " + ", ".join(words), read)


def _read_flag(text: str) -> bool:
    return {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}[
        text.lower()
    ]  # fmt: skip


def _show_flag(value: bool) -> str:
    return "1" if value else "0"


def _read_host(text: str) -> str:
    if not text.isascii() or any(char.isspace() or char in "/@?#" for char in text):
        raise ValueError
    return text


def _read_key(text: str) -> str:
    if len(text) < API_KEY_CHARS_MIN or not all("!" <= char <= "~" for char in text):
        raise ValueError
    return text


def _split(text: str) -> SplitResult:
    """The parts of a service's URL, refused where a character of its password ended the host."""
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if parts.fragment or ("@" in parts.path and "@" not in parts.netloc):
        raise ValueError
    return parts


def _read_database_url(text: str) -> str:
    if text.startswith(("postgresql://", "postgres://")):
        parts = _split(text)
        if not parts.hostname or not parts.path.strip("/"):
            raise ValueError
        return text
    path = text.removeprefix("sqlite:///")
    if path == text or path.strip("/") == "" or path == ":memory:" or "?" in path:
        raise ValueError
    return text


def _read_table(text: str) -> str:
    if not is_table(text):
        raise ValueError
    return text


def _read_schema(text: str) -> str:
    if not is_table(text) or "." in text:
        raise ValueError
    return text


def _read_outbox_url(text: str) -> str:
    scheme, _, rest = text.partition("://")
    if scheme.partition("+")[0] not in (
        "sqlite",
        "postgresql",
        "postgres",
        "mysql",
        "mariadb",
    ) or not rest.strip("/"):
        raise ValueError
    return text


def _read_broker_url(text: str) -> str:
    for each in text.split(","):
        parts = _split(each.strip())
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname or parts.path.count("/") > 1:
            raise ValueError
        if parts.port == 0:  # reading .port also refuses what is not a number
            raise ValueError
    return text


def without_password(url: str) -> str:
    """A database's URL as people may see it."""
    url = _IN_QUERY.sub(r"\1***", url)
    head, at, tail = url.rpartition("@")
    scheme, slashes, who = head.partition("://")
    if not at or ":" not in who:
        return url
    return f"{scheme}{slashes}{who.partition(':')[0]}:***@{tail}"


def _read_redis_url(text: str) -> str:
    parts = _split(text)
    if parts.scheme not in ("redis", "rediss") or not parts.hostname or parts.port == 0:
        raise ValueError
    if parts.path not in ("", "/") and not parts.path[1:].isdecimal():
        raise ValueError
    return text


def _read_url(text: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError
    if parts.port == 0:  # reading .port also refuses what is not a number
        raise ValueError
    return text.rstrip("/")


def _read_tenant(text: str) -> str:
    if not 1 <= len(text) <= 64 or not all(c in "abcdefghijklmnopqrstuvwxyz0123456789_-" for c in text):
        raise ValueError
    return text


def _read_path(text: str) -> str:
    if "\0" in text:
        raise ValueError
    return text


HOST = SettingKind("a host name or address", _read_host)
KEY = SettingKind(f"{API_KEY_CHARS_MIN} or more visible ASCII characters", _read_key)
URL = SettingKind("an http:// or https:// address without a query", _read_url)
TENANT = SettingKind("1 to 64 of a-z, 0-9, _ and -", _read_tenant)
LEVEL = one_of("debug", "info", "warning", "error")
FORMAT = one_of("auto", "json", "console")
FLAG = SettingKind("1 or 0 (also true/false, yes/no, on/off)", _read_flag, _show_flag)
NETWORKS = SettingKind(
    "networks in CIDR form, separated by commas, such as 10.0.0.0/8,fd00::/8", reach.networks, ",".join
)
TENANT_NETWORKS = SettingKind(
    "networks by tenant, such as acme=10.1.0.0/16,10.3.0.0/16;beta=10.2.0.0/16",
    reach.networks_by_tenant,
    reach.shown_by_tenant,
)
PREFIXES = SettingKind(
    "IPv6 prefixes of /32, /40, /48, /56, /64 or /96, separated by commas", reach.nat64_prefixes, ",".join
)
HOSTS = SettingKind(
    "host names, separated by commas; for addresses use deny_networks", reach.host_names, ",".join
)
FILE = SettingKind("the path of a file", _read_path)
PROXY = SettingKind("http://[user:password@]host:port, with special characters percent-encoded", reach.proxy)
LISTED = (NETWORKS, PREFIXES, HOSTS)  # may be lists in the file
REDIS = SettingKind(
    "redis://[USER:PASSWORD@]HOST:PORT[/NUMBER], or rediss:// with TLS", _read_redis_url, without_password
)
BROKER = SettingKind(
    "amqp:// or amqps://USER:PASSWORD@HOST:PORT/VHOST, several of one cluster by commas", _read_broker_url
)
DATABASE = SettingKind(
    "sqlite:///FILE (relative), sqlite:////FILE (absolute) or postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
    _read_database_url,
    without_password,
)
TABLE = SettingKind("the name of a table, with its schema if it needs one", _read_table)
SCHEMA = SettingKind("the name of a schema: a to z, 0 to 9 and _", _read_schema)
OUTBOX = SettingKind(
    "sqlite:///FILE, or postgresql://, mysql:// or mariadb://USER:PASSWORD@HOST:PORT/DATABASE",
    _read_outbox_url,
    without_password,
)
# Texts that may hold a password, whether or not they should: a refused value is never repeated, since no rule finds
# the password in a text that is no URL.
URLS = (URL, PROXY, REDIS, BROKER, DATABASE, OUTBOX)
WITH_PASSWORD = (PROXY, REDIS, BROKER, DATABASE, OUTBOX)
ENCODING_HINT = "; in a password write # as %23, / as %2F, ? as %3F, @ as %40, : as %3A and % as %25"
