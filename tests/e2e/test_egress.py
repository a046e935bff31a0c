"""Ways out of the server that its operator chose: an egress proxy, an own authority, networks and names."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.bench.server import Launch, NotReady, Server
from tests.e2e.egress import Proxy, secure_receiver
from tests.e2e.shop import Shop
from tests.wire.certificates import Authority

POLICY = {"schedule": {"fixed": [30]}, "jitter": None}  # no second attempt while a test looks


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    made = Proxy()
    yield made
    made.close()


@pytest.fixture(scope="module")
def fenced(tmp_path_factory: pytest.TempPathFactory, authority: Authority, proxy: Proxy) -> Iterator[Shop]:
    """A server with every setting about reach: one proxy, one authority, networks for one tenant, denied ones."""
    made = Shop(
        tmp_path_factory.mktemp("fenced"),
        SUREHOOK_PROXY=f"http://sender:se%40cret@127.0.0.1:{proxy.port}",
        SUREHOOK_CA_FILE=authority.file,
        SUREHOOK_ALLOW_NETWORKS="127.0.0.1/32",
        SUREHOOK_TENANT_NETWORKS="tenant-1=127.0.1.0/24",
        SUREHOOK_DENY_NETWORKS="127.0.1.9/32,198.41.0.0/24",
        SUREHOOK_OWN_HOSTS="hooks.company.com",
        SUREHOOK_NAT64_PREFIXES="2a00:1:2:3::/96",
    )
    try:
        made.start()
        assert made.tenant() == "tenant-1"
        yield made
    finally:
        made.close()


def refused(shop: Shop, tenant: str, url: str) -> str:
    asked = {"tenant": tenant, "url": url, "event_types": ["*"]}
    return str(shop.api.refused("POST", "/v1/endpoints", asked)["code"])


def attempt(shop: Shop, url: str, tenant: str = "tenant-1", **fields: Any) -> dict[str, object]:
    """The first attempt of one event at `url`."""
    endpoint = shop.endpoint(tenant, url, policy=POLICY, **fields)
    event = shop.publish(tenant)
    delivery = next(each for each in shop.deliveries(event) if each["endpoint"] == endpoint["id"])
    shop.reaches(delivery["id"], "delivered", "retrying")
    shop.api.ask("DELETE", f"/v1/endpoints/{endpoint['id']}")
    return dict(shop.attempts(delivery["id"])[0])


def test_a_request_leaves_through_the_proxy_which_alone_learns_its_password(
    fenced: Shop, proxy: Proxy
) -> None:
    proxy.heads.clear()
    spot = fenced.receiver.spot()
    made = attempt(fenced, spot.url)
    where = f"127.0.0.1:{fenced.receiver.port}"
    pair = base64.b64encode(b"sender:se@cret").decode()
    assert made["outcome"] == "delivered" and made["address"] == "127.0.0.1"
    assert proxy.heads == [
        f"CONNECT {where} HTTP/1.1\r\nhost: {where}\r\nproxy-authorization: Basic {pair}\r\n\r\n".encode()
    ]
    assert spot.one().header("proxy-authorization") is None
    assert pair not in fenced.log and "cret" not in fenced.log


def test_an_own_authority_is_trusted_through_the_proxy_too(
    fenced: Shop, proxy: Proxy, authority: Authority
) -> None:
    proxy.heads.clear()
    seen: list[bytes] = []
    with secure_receiver(authority.server("127.0.0.1"), seen) as port:
        made = attempt(fenced, f"https://127.0.0.1:{port}/in")
    assert made["outcome"] == "delivered" and seen[0].startswith(b"POST /in HTTP/1.1\r\n")
    assert len(proxy.heads) == 1 and proxy.heads[0].startswith(f"CONNECT 127.0.0.1:{port} ".encode())


def test_the_name_of_the_target_is_verified_behind_the_proxy(fenced: Shop, authority: Authority) -> None:
    seen: list[bytes] = []
    with secure_receiver(authority.server("hooks.other.com"), seen) as port:
        made = attempt(fenced, f"https://127.0.0.1:{port}/in")
    assert (made["outcome"], made["error"], seen) == ("unreachable", "tls_name", [])


def test_without_the_file_the_same_authority_is_unknown(shop: Shop, authority: Authority) -> None:
    seen: list[bytes] = []
    with secure_receiver(authority.server("127.0.0.1"), seen) as port:
        made = attempt(shop, f"https://127.0.0.1:{port}/in", shop.tenant())
    assert (made["outcome"], made["error"], seen) == ("unreachable", "tls_untrusted", [])


def test_an_endpoint_has_an_authority_and_a_certificate_of_its_own(shop: Shop, authority: Authority) -> None:
    """The receiver insists on a client certificate; the server's own authorities know neither side."""
    certificate, key = authority.issue("sender")
    ca = Path(authority.file).read_text()
    shown = {
        "ca": ca,
        "client_certificate": Path(certificate).read_text(),
        "client_key": Path(key).read_text(),
    }
    asking = authority.server("127.0.0.1")
    asking.verify_mode = ssl.CERT_REQUIRED
    asking.load_verify_locations(authority.file)
    tenant, seen = shop.tenant(), []
    with secure_receiver(asking, seen) as port:
        url = f"https://127.0.0.1:{port}/in"
        without = attempt(shop, url, tenant, tls={"ca": ca})
        made = attempt(shop, url, tenant, tls=shown)
    assert without["error"] in ("tls_client_certificate", "reset") and without["outcome"] != "delivered"
    assert made["outcome"] == "delivered" and len(seen) == 1
    assert shown["client_key"].splitlines()[1] not in shop.log


def test_tls_that_cannot_work_is_a_422_with_its_field(shop: Shop, authority: Authority) -> None:
    certificate, _ = authority.issue("sender")
    _, key = authority.issue("another")
    pair = {"client_certificate": Path(certificate).read_text(), "client_key": Path(key).read_text()}
    asked = {"tenant": shop.tenant(), "url": "https://127.0.0.1/", "event_types": ["*"], "tls": pair}
    problem = shop.api.refused("POST", "/v1/endpoints", asked)
    assert (problem["status"], problem["code"], problem["field"]) == (422, "invalid_tls", "tls.client_key")
    good = shop.endpoint(
        asked["tenant"], "https://127.0.0.1:9443/", tls={"ca": Path(authority.file).read_text()}
    )
    problem = shop.api.refused("PATCH", f"/v1/endpoints/{good['id']}", {"url": "http://127.0.0.1:9443/"})
    assert (problem["code"], problem["field"]) == ("invalid_tls", "tls")


@pytest.mark.parametrize(
    ("tenant", "url", "code"),
    [
        ("tenant-1", "http://127.0.1.9:9000/", "address_forbidden"),  # granted to the tenant, but denied
        ("tenant-1", "https://198.41.0.4/", "address_forbidden"),  # public, but denied
        ("tenant-1", "http://127.0.2.1:9000/", "address_forbidden"),
        ("tenant-2", "http://127.0.1.1:9000/", "address_forbidden"),  # another tenant's network
        ("tenant-1", "https://[2a00:1:2:3::a00:1]/", "address_forbidden"),  # 10.0.0.1 inside an own prefix
        ("tenant-1", "https://hooks.company.com/", "url_host_name"),
    ],
)
def test_what_the_operator_fenced_off_is_a_422(fenced: Shop, tenant: str, url: str, code: str) -> None:
    fenced.api.ask("POST", "/v1/tenants", {"id": "tenant-2", "name": "another"})
    assert refused(fenced, tenant, url) == code


def test_a_tenants_own_network_is_open_to_it(fenced: Shop) -> None:
    assert fenced.endpoint("tenant-1", "http://127.0.1.1:9000/")["status"] == "active"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SUREHOOK_CA_FILE", "nowhere.pem", "nowhere.pem cannot be read: No such file"),
        ("SUREHOOK_PROXY", "10.0.0.9:3128", "expected http://[user:password@]host:port"),
    ],
)
def test_a_setting_that_cannot_be_used_stops_the_start(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    server = Server(Launch(folder=tmp_path, settings={name: value}))
    server.start()
    with pytest.raises(NotReady, match="ended with status 2"):
        server.wait_ready()
    assert said in server.log.read_text()
