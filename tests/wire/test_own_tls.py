"""An endpoint's own authorities and client certificate: judged when given, shown where meant, never shared."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import uvloop
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from surehook.core.errors import Problem
from surehook.core.model import EndpointTls
from surehook.wire import contexts, material
from surehook.wire.contexts import Contexts
from tests.wire.certificates import Authority
from tests.wire.posting import NOBODY, client, post
from tests.wire.receivers import Hang, Hear, Receiver, Say
from tests.wire.strict import StrictServer

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
SCRIPT = (Hear(), Say(OK), Hear(), Say(OK), Hang())
RUNS = {"asyncio": asyncio.run, "uvloop": uvloop.run}
URL = "https://hooks.company.com/"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


def read(path) -> str:
    return Path(path).read_text()


def shows(issuer, *, ca=None, days=(-1, 1)) -> EndpointTls:
    """Own TLS with a certificate of `issuer`."""
    certificate, key = issuer.issue("sender", days=days)
    return EndpointTls(
        ca=None if ca is None else read(ca.file), client_certificate=read(certificate), client_key=read(key)
    )


def asking(authority, *, version=ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    """A server that insists on a client certificate of this authority."""
    server = authority.server("127.0.0.1")
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(authority.file)
    server.maximum_version = version
    return server


def attempts(receiver, server, *requests, loop="asyncio", **settings):
    """One attempt after another on one client; the answers."""

    async def case():
        async with receiver.running(ssl=server):
            wire = client(**settings)
            url = f"https://127.0.0.1:{receiver.port}/"
            answers = [await post(wire, url, **request) for request in requests]
            await wire.close()
            return answers

    return RUNS[loop](case())


@pytest.mark.parametrize("loop", RUNS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_endpoints_own_certificate_and_authority_are_used(authority, version, loop):
    tls = shows(authority, ca=authority)
    receiver = Receiver(SCRIPT)
    first, second = attempts(
        receiver, asking(authority, version=version), {"tls": tls}, {"tls": tls}, loop=loop
    )
    assert (first.status, second.status, receiver.connections) == (200, 200, 1)


@pytest.mark.parametrize("loop", RUNS)
def test_a_wait_for_a_context_that_takes_too_long_is_our_doing(authority, loop):
    """Whose context is made next is nothing that a receiver could help."""
    receiver = Receiver(SCRIPT)

    async def case():
        async with receiver.running(ssl=asking(authority)):
            wire = client()
            await wire.shared.contexts._turns.turn("other")
            url = f"https://127.0.0.1:{receiver.port}/"
            answer = await post(wire, url, tls=shows(authority, ca=authority), connect_timeout_s=0.05)
            await wire.close()
            return answer

    answer = RUNS[loop](case())
    assert (answer.failure, receiver.connections) == ("no_resources", 0)


def test_an_own_authority_takes_the_place_of_the_others(authority, stranger):
    receiver = Receiver(SCRIPT)
    trusted = {"tls": EndpointTls(ca=read(stranger.file))}
    (answer,) = attempts(receiver, authority.server("127.0.0.1"), trusted, ca_file=authority.file)
    assert (answer.failure, receiver.requests) == ("tls_untrusted", [])


def test_without_an_own_authority_the_common_ones_are_trusted(authority):
    (answer,) = attempts(
        Receiver(SCRIPT), asking(authority), {"tls": shows(authority)}, ca_file=authority.file
    )
    assert answer.status == 200


# OpenSSL as a TLS 1.2 server answers a missing certificate with a plain handshake failure.
NAMED = {("nothing", ssl.TLSVersion.TLSv1_2): "tls_protocol"}


@pytest.mark.parametrize("loop", RUNS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("shown", ["nothing", "a stranger's", "an expired one"])
def test_a_refused_client_certificate_has_its_name_and_no_request_is_heard(
    authority, stranger, shown, version, loop
):
    """In TLS 1.3 the refusal is an alert that comes after the handshake, in the place of the answer.

    A server as near as this one may reset the connection in the very moment of our write: then that is all there is.
    """
    tls = {
        "nothing": EndpointTls(ca=read(authority.file)),
        "a stranger's": shows(stranger, ca=authority),
        "an expired one": shows(authority, ca=authority, days=(-9, -1)),
    }[shown]

    async def case(port):
        wire = client()
        answers = [await post(wire, f"https://127.0.0.1:{port}/", tls=tls) for _ in range(5)]
        await wire.close()
        return answers

    with StrictServer(asking(authority, version=version)) as server:
        answers = RUNS[loop](case(server.port))
    named = NAMED.get((shown, version), "tls_client_certificate")
    failures = [answer.failure for answer in answers]
    assert failures.count(named) >= 3 and set(failures) <= {named, "reset"}
    assert server.heard == []


def test_connections_with_different_tls_are_never_shared(authority):
    """Each client certificate, and each tenant, has a connection of its own."""
    one, two = shows(authority, ca=authority), shows(authority, ca=authority)
    server = authority.server("127.0.0.1")
    receiver = Receiver(SCRIPT)
    answers = attempts(
        receiver,
        server,
        {"tls": one},
        {"tls": two},
        {"tls": one},
        {"tls": one, "tenant": "beta"},
        {},
        ca_file=authority.file,
    )
    assert [answer.status for answer in answers] == [200] * 5
    assert [answer.tls_us is not None for answer in answers] == [True, True, False, True, True]
    assert receiver.connections == 4


def test_an_own_certificate_goes_along_a_redirect_on_its_own_origin(authority):
    receiver = Receiver(
        (Hear(), Say(b"HTTP/1.1 307 T\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n"), Hear(), Say(OK), Hang())
    )
    asked = {"tls": shows(authority, ca=authority), "redirects": 1}
    (answer,) = attempts(receiver, asking(authority), asked)
    assert (answer.status, answer.redirected) == (200, 1)


def test_an_own_certificate_is_not_shown_where_a_redirect_leads(authority):
    """The second host asks for a certificate and gets none; it trusts the same authority."""

    async def case(port):
        away = b"HTTP/1.1 307 T\r\nlocation: https://127.0.0.1:%d/\r\ncontent-length: 0\r\n\r\n" % port
        receiver = Receiver((Hear(), Say(away), Hang()))
        async with receiver.running(ssl=asking(authority)):
            wire = client(ca_file=authority.file)
            url = f"https://127.0.0.1:{receiver.port}/"
            answer = await post(wire, url, tls=shows(authority), redirects=1)
            await wire.close()
            return answer

    with StrictServer(asking(authority)) as server:
        answer = asyncio.run(case(server.port))
    assert answer.failure in ("tls_client_certificate", "reset")
    assert (answer.redirected, server.heard) == (1, [])


# -- judging ---------------------------------------------------------------------------------------------


def now() -> int:
    import time

    return int(time.time() * 1000)


def key_pem(key, password=None) -> str:
    way = (
        serialization.NoEncryption()
        if password is None
        else serialization.BestAvailableEncryption(password.encode())
    )
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, way).decode()


def judged(tls, *, url=URL):
    """The field and detail of the refusal."""
    with pytest.raises(Problem) as caught:
        material.check(tls, url=url, now=now())
    assert caught.value.code == "invalid_tls" and caught.value.hint
    return caught.value.field, caught.value.detail


def test_good_material_is_taken(authority):
    material.check(shows(authority, ca=authority), url=URL, now=now())
    material.check(EndpointTls(ca=read(authority.file) * 3), url=URL, now=now())


def test_bad_material_is_refused_with_its_field(authority, stranger):
    good = shows(authority)
    leaf, key = good.client_certificate, good.client_key
    other = shows(stranger).client_key
    old = shows(authority, days=(-9, -1))
    expired_ca = Path(authority.issue("x", days=(-9, -1))[0]).read_text()
    curve = ec.generate_private_key(ec.SECP256R1())
    cases = [
        (EndpointTls(ca="hello"), "tls.ca", "not 1 to 100 certificates"),
        (EndpointTls(ca="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "tls.ca", "not 1 to"),
        (EndpointTls(ca=read(authority.file) * 101), "tls.ca", "not 1 to 100"),
        (EndpointTls(ca=expired_ca), "tls.ca", "expired"),
        (EndpointTls(ca=leaf + key), "tls.ca", "private key"),
        (EndpointTls(client_certificate=leaf + key, client_key=key), "tls.client_certificate", "private key"),
        (EndpointTls(client_certificate="", client_key=key), "tls.client_certificate", "not 1 to"),
        (EndpointTls(client_certificate=leaf), "tls.client_key", "come together"),
        (EndpointTls(client_key=key), "tls.client_certificate", "come together"),
        (EndpointTls(client_certificate=leaf, client_key=other), "tls.client_key", "not the key of"),
        (EndpointTls(client_certificate=leaf, client_key="hello"), "tls.client_key", "not a private key"),
        (EndpointTls(client_certificate=leaf, client_key=leaf), "tls.client_key", "not a private key"),
        (EndpointTls(client_certificate=leaf, client_key=key_pem(curve, "pass")), "tls.client_key", "encrypted"),
        (old, "tls.client_certificate", "expired on"),
    ]  # fmt: skip
    for tls, field, said in cases:
        found = judged(tls)
        assert found[0] == field and said in found[1], (found, field, said)
    found = judged(good, url="http://hooks.company.com/")
    assert found[0] == "tls"


def test_a_key_that_would_take_our_time_is_refused(authority):
    large = rsa.generate_private_key(65537, 4608)
    found = judged(
        EndpointTls(client_certificate=shows(authority).client_certificate, client_key=key_pem(large))
    )
    assert found == ("tls.client_key", "this kind of key is not taken")


def test_no_refusal_repeats_a_key(authority, stranger):
    key = shows(stranger).client_key
    tls = EndpointTls(client_certificate=shows(authority).client_certificate, client_key=key)
    with pytest.raises(Problem) as caught:
        material.check(tls, url=URL, now=now())
    assert key.splitlines()[1] not in str(caught.value) and key not in repr(tls)


def test_stored_material_that_became_unusable_fails_the_attempt_and_nothing_is_dialled(authority):
    receiver = Receiver(SCRIPT)
    good = shows(authority)
    broken = EndpointTls(client_certificate=good.client_certificate, client_key="gone")
    unread = EndpointTls(ca="gone")
    answers = attempts(receiver, None, {"tls": broken}, {"tls": unread})
    assert [answer.failure for answer in answers] == ["tls_client_certificate", "tls_untrusted"]
    assert receiver.connections == 0


# -- keeping ---------------------------------------------------------------------------------------------


def test_a_context_is_made_once_for_a_setting_and_kept_by_budget(authority):
    kept = Contexts(ca_file=None, common=NOBODY, boot=lambda: 0.0)
    tls = EndpointTls(ca=read(authority.file))
    first = kept.of(material.own(tls, "acme"))
    assert kept.of(material.own(EndpointTls(ca=tls.ca), "acme")) is first
    assert kept.of(material.own(tls, "beta")) is not first
    assert kept.of(None) is NOBODY is not first
    room = contexts.BUDGET_KIB // contexts.SMALL_KIB
    for number in range(room + 9):
        kept.of(material.own(tls, f"t{number}"))
    assert kept.held_kib <= contexts.BUDGET_KIB
    assert kept.of(material.own(tls, "acme")) is not first


def test_a_setting_that_says_nothing_is_none():
    assert material.own(EndpointTls(), "acme") is None and material.own(None, "acme") is None
