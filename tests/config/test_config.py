"""Settings: who wins, where each value comes from, and what a person reads about a mistake."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from surehook.config import BY_NAME, SETTINGS, UNAVAILABLE, Settings, kinds
from surehook.core.errors import SettingsError

KEY = "a-key-of-sixteen-chars"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, so that no settings file is found by accident."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, text: str, name: str = "surehook.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_every_field_has_its_line_and_every_line_its_field() -> None:
    fields = {each.name for each in dataclasses.fields(Settings)} - {"origins", "file"}
    assert fields == set(BY_NAME)
    assert not fields & set(UNAVAILABLE)


def test_every_default_is_a_value_its_own_kind_accepts(folder: Path) -> None:
    plain = Settings()
    for setting in SETTINGS:
        shown = plain.shown(setting.name)
        if shown:
            assert setting.kind.read(shown) == getattr(plain, setting.name), setting.name


def test_nothing_given_means_defaults(folder: Path) -> None:
    settings = Settings.load(env={})
    assert settings == Settings()
    assert settings.origin("port") == "default"
    assert settings.server_url == "http://127.0.0.1:8080"


def test_flag_beats_environment_beats_file_beats_dev_beats_default(folder: Path) -> None:
    write(folder, 'port = 1001\nhost = "10.0.0.1"\nlog_level = "debug"\nallow_http = false\n')
    env = {"SUREHOOK_PORT": "1002", "SUREHOOK_HOST": "10.0.0.2", "HOME": "x"}
    settings = Settings.load(env=env, flags={"port": 1003, "host": None}, dev=True)
    found = {
        name: (getattr(settings, name), settings.origin(name))
        for name in ("port", "host", "log_level", "allow_http", "allow_networks", "slots_first")
    }
    assert found == {
        "port": (1003, "flag --port"),
        "host": ("10.0.0.2", "environment SUREHOOK_HOST"),
        "log_level": ("debug", "file surehook.toml"),
        "allow_http": (False, "file surehook.toml"),
        "allow_networks": (("127.0.0.0/8", "::1/128"), "--dev"),
        "slots_first": (512, "default"),
    }


def test_an_empty_variable_is_not_set(folder: Path) -> None:
    assert Settings.load(env={"SUREHOOK_PORT": "", "SUREHOOK_API_KEY": ""}) == Settings()


def test_a_named_file_is_read_wherever_it_lies(folder: Path) -> None:
    path = write(folder, "port = 9000", name="other.toml")
    assert Settings.load(env={"SUREHOOK_CONFIG": str(path)}).port == 9000
    assert Settings.load(env={}, file=path).origin("port") == f"file {path}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('allow_networks = ["10.0.0.0/8", "fd00::/8"]', ("10.0.0.0/8", "fd00::/8")),
        ('allow_networks = "10.0.0.0/8, 192.168.1.7"', ("10.0.0.0/8", "192.168.1.7/32")),
        ("allow_networks = []", ()),
    ],
)
def test_networks_are_a_list_or_commas(folder: Path, text: str, expected: tuple[str, ...]) -> None:
    write(folder, text)
    assert Settings.load(env={}).allow_networks == expected


@pytest.mark.parametrize(
    "text",
    [
        'tenant_networks = "acme=10.1.0.0/16, 10.3.0.0/16; beta=10.2.0.7"',
        '[tenant_networks]\nacme = ["10.1.0.0/16", "10.3.0.0/16"]\nbeta = "10.2.0.7"',
    ],
)
def test_networks_by_tenant_are_one_text_or_a_table(folder: Path, text: str) -> None:
    write(folder, text)
    settings = Settings.load(env={})
    assert settings.tenant_networks == {"acme": ("10.1.0.0/16", "10.3.0.0/16"), "beta": ("10.2.0.7/32",)}
    shown = settings.shown("tenant_networks")
    assert Settings.load(env={"SUREHOOK_TENANT_NETWORKS": shown}).tenant_networks == settings.tenant_networks


def test_own_hosts_are_read_as_urls_are(folder: Path) -> None:
    settings = Settings.load(env={"SUREHOOK_OWN_HOSTS": "Hooks.Company.com., api.company.com"})
    assert settings.own_hosts == ("hooks.company.com", "api.company.com")


@pytest.mark.parametrize("text", ["1", "true", "Yes", "ON"])
def test_a_switch_is_on_in_every_usual_spelling(folder: Path, text: str) -> None:
    assert Settings.load(env={"SUREHOOK_ALLOW_HTTP": text}).allow_http


@pytest.mark.parametrize(
    ("env", "key", "hint"),
    [
        ({"SUREHOOK_PROT": "1"}, "SUREHOOK_PROT", "did you mean SUREHOOK_PORT?"),
        ({"SUREHOOK_DATABASEURL": "1"}, "SUREHOOK_DATABASEURL", "did you mean SUREHOOK_DATABASE_URL?"),
        ({"SUREHOOK_QQ": "1"}, "SUREHOOK_QQ", "`surehook config show` lists every setting"),
        ({"SUREHOOK_PORT": "http"}, "SUREHOOK_PORT", "expected a whole number from 0 to 65,535"),
        ({"SUREHOOK_PORT": "65536"}, "SUREHOOK_PORT", "expected a whole number from 0 to 65,535"),
        ({"SUREHOOK_ALLOW_HTTP": "maybe"}, "SUREHOOK_ALLOW_HTTP", "expected 1 or 0"),
        (
            {"SUREHOOK_ALLOW_NETWORKS": "10.0.0.1/8"},
            "SUREHOOK_ALLOW_NETWORKS",
            "expected networks in CIDR form",
        ),
        ({"SUREHOOK_DENY_NETWORKS": "public"}, "SUREHOOK_DENY_NETWORKS", "expected networks in CIDR form"),
        (
            {"SUREHOOK_TENANT_NETWORKS": "10.1.0.0/16"},
            "SUREHOOK_TENANT_NETWORKS",
            "expected networks by tenant",
        ),
        ({"SUREHOOK_TENANT_NETWORKS": "acme="}, "SUREHOOK_TENANT_NETWORKS", "expected networks by tenant"),
        ({"SUREHOOK_TENANT_NETWORKS": "Acme=10.0.0.0/8"}, "SUREHOOK_TENANT_NETWORKS", "expected networks by"),
        (
            {"SUREHOOK_TENANT_NETWORKS": "a=10.0.0.0/8;a=::/0"},
            "SUREHOOK_TENANT_NETWORKS",
            "expected networks",
        ),
        (
            {"SUREHOOK_NAT64_PREFIXES": "2001:db8::/95"},
            "SUREHOOK_NAT64_PREFIXES",
            "expected IPv6 prefixes of",
        ),
        ({"SUREHOOK_NAT64_PREFIXES": "10.0.0.0/32"}, "SUREHOOK_NAT64_PREFIXES", "expected IPv6 prefixes of"),
        ({"SUREHOOK_OWN_HOSTS": "10.0.0.1"}, "SUREHOOK_OWN_HOSTS", "expected host names"),
        ({"SUREHOOK_OWN_HOSTS": "https://x.com"}, "SUREHOOK_OWN_HOSTS", "expected host names"),
        ({"SUREHOOK_DATABASE_URL": "mysql://x/y"}, "SUREHOOK_DATABASE_URL", "expected sqlite:///FILE"),
        ({"SUREHOOK_DATABASE_URL": "postgresql://x"}, "SUREHOOK_DATABASE_URL", "expected sqlite:///FILE"),
        ({"SUREHOOK_ROLE": "boss"}, "SUREHOOK_ROLE", "expected one of all, api, worker, console"),
        ({"SUREHOOK_PROCESSES": "0"}, "SUREHOOK_PROCESSES", "expected a whole number from 1 to 64"),
        ({"SUREHOOK_DATABASE_URL": "sqlite:///:memory:"}, "SUREHOOK_DATABASE_URL", "expected sqlite:///FILE"),
        ({"SUREHOOK_URL": "localhost:8080"}, "SUREHOOK_URL", "expected an http:// or https:// address"),
        ({"SUREHOOK_URL": "http://h:99999"}, "SUREHOOK_URL", "expected an http:// or https:// address"),
        ({"SUREHOOK_HOST": "a b"}, "SUREHOOK_HOST", "expected a host name or address"),
        ({"SUREHOOK_TENANT": "Acme"}, "SUREHOOK_TENANT", "expected 1 to 64 of a-z"),
        ({"SUREHOOK_LOG_LEVEL": "loud"}, "SUREHOOK_LOG_LEVEL", "expected one of debug, info, warning, error"),
        ({"SUREHOOK_REDIS_URL": "http://h"}, "SUREHOOK_REDIS_URL", "expected redis://"),
        ({"SUREHOOK_CONFIG": "nowhere.toml"}, "SUREHOOK_CONFIG", "correct the path, or leave it out"),
    ],
)
def test_a_wrong_variable_is_named_with_what_would_be_accepted(
    folder: Path, env: dict[str, str], key: str, hint: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load(env=env)
    assert caught.value.key == key
    assert (caught.value.hint or "").startswith(hint)


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ("prot = 1", "prot", "did you mean port?"),
        ("[database]\nurl = 1", "database", "did you mean database_url?"),
        ("port = 80.5", "port", "expected a whole number"),
        ("port = [1]", "port", "expected a whole number"),
        ("encryption_key = 'x'", "encryption_key", "remove it from surehook.toml"),
        ("port = ", "surehook.toml", "lines look like"),
        ("port = 1\nport = 2", "surehook.toml", "lines look like"),
    ],
)
def test_a_wrong_file_is_named_with_what_would_be_accepted(
    folder: Path, text: str, key: str, hint: str
) -> None:
    write(folder, text)
    with pytest.raises(SettingsError) as caught:
        Settings.load(env={})
    assert caught.value.key == key
    assert (caught.value.hint or "").startswith(hint)


def test_a_file_that_is_not_text_is_refused(folder: Path) -> None:
    (folder / "surehook.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="cannot be read"):
        Settings.load(env={})


@pytest.mark.parametrize(
    "text", ["short", "fifteen-chars-x", "spaces are not visible", "umlaute-sind-schön-"]
)
def test_a_weak_key_is_refused_without_repeating_it(folder: Path, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load(env={"SUREHOOK_API_KEY": text})
    assert text not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["https://us:secret@h:1", "http://us:secret@h", "http://us:secret@h:0", "http://us:secret@h:1/x", "us:secret@h:1",
     "http://us:se/secret@h:1"],
)  # fmt: skip
def test_a_proxy_that_is_none_is_refused_without_repeating_its_password(folder: Path, text: str) -> None:
    with pytest.raises(SettingsError, match=r"http://\[user:password@\]host:port") as caught:
        Settings.load(env={"SUREHOOK_PROXY": text})
    assert caught.value.key == "SUREHOOK_PROXY" and "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("DATABASE_URL", "postgresql://us:se#cret@h/x"),
        ("DATABASE_URL", "postgresql://us:12/cret@h/x"),
        ("DATABASE_URL", "mysql://us:se-cret@h/x"),
        ("REDIS_URL", "http://us:se-cret@h"),
        ("REDIS_URL", "redis://us:a@b#cret@h"),
        ("BROKER_URL", "amqp://us:12/cret@h"),
        ("URL", "ftp://us:se-cret@h"),
    ],
)
@pytest.mark.parametrize("in_file", [True, False])
def test_a_url_that_is_refused_is_not_repeated(folder: Path, variable: str, text: str, in_file: bool) -> None:
    if in_file:
        (folder / "surehook.toml").write_text(f'{variable.lower()} = "{text}"\n')
    with pytest.raises(SettingsError, match="the value is not accepted") as caught:
        Settings.load(env={} if in_file else {f"SUREHOOK_{variable}": text})
    assert "cret" not in str(caught.value)
    assert variable == "URL" or "in a password write # as %23" in str(caught.value)


def test_every_setting_that_is_a_url_keeps_its_value_to_itself() -> None:
    assert {each.kind for each in SETTINGS if each.unit == "URL"} == set(kinds.URLS)


@pytest.mark.parametrize(
    "text", ["postgresql://us@h/x?password=cret", "postgresql://us:cret@h/x?sslpassword=cret"]
)
def test_a_password_is_hidden_wherever_the_url_has_it(folder: Path, text: str) -> None:
    assert "cret" not in Settings.load(env={"SUREHOOK_DATABASE_URL": text}).shown("database_url")


def test_a_proxys_password_is_never_shown(folder: Path) -> None:
    settings = Settings.load(env={"SUREHOOK_PROXY": "http://us:pass@10.0.0.9:3128"})
    assert settings.proxy == "http://us:pass@10.0.0.9:3128"
    assert settings.shown("proxy") == "(set, 28 characters)"
    assert "pass" not in repr(settings)


def test_secrets_are_never_shown(folder: Path) -> None:
    settings = Settings.load(env={"SUREHOOK_API_KEY": KEY})
    assert settings.api_key == KEY
    assert settings.shown("api_key") == "(set, 22 characters)"
    assert KEY not in repr(settings)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"SUREHOOK_HOST": "0.0.0.0", "SUREHOOK_PORT": "81"}, "http://127.0.0.1:81"),
        ({"SUREHOOK_HOST": "::1"}, "http://[::1]:8080"),
        ({"SUREHOOK_URL": "https://hooks.example.com/"}, "https://hooks.example.com"),
    ],
)
def test_commands_find_the_server(folder: Path, given: dict[str, str], expected: str) -> None:
    assert Settings.load(env=given).server_url == expected


@pytest.mark.parametrize(
    ("url", "path"), [("sqlite:///a.db", "a.db"), ("sqlite:////var/lib/a.db", "/var/lib/a.db")]
)
def test_the_database_path_follows_the_slashes(folder: Path, url: str, path: str) -> None:
    assert Settings.load(env={"SUREHOOK_DATABASE_URL": url}).database_path == Path(path)
