"""TLS on real sockets: names, dates, authorities, versions, client certificates, silence."""

from __future__ import annotations

import asyncio
import os
import ssl

import pytest
import uvloop

from surehook.core.errors import SettingsError
from surehook.wire import tls
from surehook.wire.tls import client_context
from tests.wire.certificates import Authority
from tests.wire.posting import client, post
from tests.wire.receivers import Drip, Hang, Hear, Receiver, Reset, Say

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
SCRIPT = (Hear(), Say(OK), Hear(), Say(OK), Hang())
RUNS = {"asyncio": asyncio.run, "uvloop": uvloop.run}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"))


def attempt(receiver, *, server=None, host="127.0.0.1", loop="asyncio", times=1, **settings):
    """`times` attempts over TLS at a receiver; the answers."""
    request = {key: settings.pop(key) for key in ("timeout_s", "connect_timeout_s") if key in settings}

    async def case():
        async with receiver.running(ssl=server):
            wire = client(names={"hooks.company.com": ("127.0.0.1",)}, **settings)
            answers = [await post(wire, f"https://{host}:{receiver.port}/", **request) for _ in range(times)]
            await wire.close()
            return answers

    return RUNS[loop](case())


@pytest.mark.parametrize("loop", RUNS)
@pytest.mark.parametrize("host", ["127.0.0.1", "hooks.company.com"])
def test_a_covered_host_is_called_and_the_handshake_is_reused(authority, host, loop):
    receiver = Receiver(SCRIPT)
    first, second = attempt(
        receiver, server=authority.server(host), host=host, loop=loop, times=2, ca_file=authority.file
    )
    assert (first.status, second.status, receiver.connections) == (200, 200, 1)
    assert first.tls_us > 0 and second.tls_us is None


@pytest.mark.parametrize("loop", RUNS)
@pytest.mark.parametrize(
    ("hosts", "days", "failure"),
    [(("127.0.0.1",), (-9, -1), "tls_expired"), (("127.0.0.1",), (1, 9), "tls_expired"), (("127.0.0.2",), (-1, 1), "tls_name"),
     (("hooks.company.com",), (-1, 1), "tls_name")],
)  # fmt: skip
def test_a_bad_certificate_has_its_name_and_hears_no_request(authority, hosts, days, failure, loop):
    receiver = Receiver(SCRIPT)
    (answer,) = attempt(
        receiver, server=authority.server(*hosts, days=days), loop=loop, ca_file=authority.file
    )
    assert (answer.failure, answer.unknown, answer.status, receiver.requests) == (failure, False, None, [])
    assert answer.connect_us is not None


def test_a_name_is_not_covered_by_its_address(authority):
    (answer,) = attempt(
        Receiver(SCRIPT),
        server=authority.server("127.0.0.1"),
        host="hooks.company.com",
        ca_file=authority.file,
    )
    assert answer.failure == "tls_name"


def test_an_unknown_authority_is_untrusted(authority):
    (answer,) = attempt(Receiver(SCRIPT), server=authority.server("127.0.0.1"))
    assert answer.failure == "tls_untrusted"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the old version is the point
def test_an_old_protocol_is_refused(authority):
    server = authority.server("127.0.0.1")
    server.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    server.set_ciphers("ALL:@SECLEVEL=0")
    server.maximum_version = ssl.TLSVersion.TLSv1_1
    (answer,) = attempt(Receiver(SCRIPT), server=server, ca_file=authority.file)
    assert answer.failure == "tls_protocol"


@pytest.mark.parametrize("loop", RUNS)
@pytest.mark.parametrize(
    "banner", [b"SSH-2.0-x\r\n", OK, b"\x15\x03\x01\x00\x02\x02\x46", b"220 mail ESMTP\r\n"]
)
def test_what_does_not_speak_tls_is_a_protocol_error(banner, loop):
    (answer,) = attempt(Receiver((Say(banner), Hang())), loop=loop)
    assert answer.failure == "tls_protocol"


@pytest.mark.parametrize("loop", RUNS)
@pytest.mark.parametrize(
    "script", [(Hang(),), (Drip(b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76" * 9, 0.02), Hang())]
)
def test_a_handshake_that_never_ends_is_a_tls_timeout_in_time(script, loop):
    (answer,) = attempt(Receiver(script), loop=loop, connect_timeout_s=0.15)
    assert answer.failure == "tls_timeout" and answer.total_us < 1_000_000


@pytest.mark.parametrize("loop", RUNS)
def test_a_reset_in_the_handshake_is_a_connect_reset(loop):
    (answer,) = attempt(Receiver((Reset(),)), loop=loop)
    assert answer.failure == "connect_reset"


@pytest.mark.parametrize("held", [None, b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nxx\n"])
def test_a_ca_file_that_cannot_be_used_stops_the_program_at_its_start(tmp_path, held):
    file = tmp_path / "ca.pem"
    if held is not None:
        file.write_bytes(held)
    with pytest.raises(SettingsError) as caught:
        client(ca_file=str(file))
    assert caught.value.key == "ca_file" and str(file) in str(caught.value)


def test_a_ca_file_is_trusted_beside_the_systems_authorities(authority):
    alone, both = client_context(), client_context(ca_file=authority.file)
    assert both.cert_store_stats()["x509_ca"] == alone.cert_store_stats()["x509_ca"] + 1


def test_the_system_has_authorities_whatever_the_environment_says(monkeypatch, tmp_path):
    # Variables are set for real here, since the promise is that they are not read.
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    context = client_context()
    assert (
        context.keylog_filename is None
        and context.check_hostname
        and context.verify_mode == ssl.CERT_REQUIRED
    )
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    if any(os.path.isfile(bundle) for bundle in tls.BUNDLES):
        assert context.cert_store_stats()["x509_ca"] > 0


@pytest.mark.parametrize(("host", "said"), [("127.0.0.1", None), ("hooks.company.com", "hooks.company.com")])
def test_the_server_name_is_told_for_names_only(authority, host, said):
    server = authority.server(host)
    heard = []
    server.sni_callback = lambda _socket, name, _context: heard.append(name)
    (answer,) = attempt(Receiver(SCRIPT), server=server, host=host, ca_file=authority.file)
    assert (answer.status, heard) == (200, [said])
