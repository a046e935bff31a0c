"""An operator's egress proxy: a tunnel to the judged address, and its own trouble kept apart."""

from __future__ import annotations

import asyncio

import pytest

from surehook.core.errors import SettingsError
from surehook.core.outcome import BY_FAILURE, OURS
from surehook.wire import proxy
from tests.wire.network import OK, Network
from tests.wire.posting import BODY, client, post, until
from tests.wire.receivers import Drip, Flood, Hang, Hear, Receiver, Reset, Say

PROXY, PUBLIC = "10.0.0.9", "8.8.8.8"
NAMES = {
    "hooks.company.com": (PUBLIC,),
    "private.company.com": ("10.0.0.1",),
    "self.company.com": (PROXY,),
    "proxy": (PROXY,),
}
OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"


def attempt(
    url="https://hooks.company.com/in", *, reply=OPENED, setting=f"http://{PROXY}:3128", times=1, **settings
):
    network = Network()
    network.answers[PROXY] = lambda request: reply if request.startswith(b"CONNECT") else OK
    if isinstance(reply, OSError):
        network.answers[PROXY] = reply
    request = {key: settings.pop(key) for key in ("timeout_s", "connect_timeout_s") if key in settings}

    async def case():
        wire = client(names=NAMES, dialer=network, proxy=setting, **{"allow_networks": ()} | settings)
        answers = [await post(wire, url, **request) for _ in range(times)]
        await wire.close()
        return answers[-1]

    return asyncio.run(case()), network


@pytest.mark.parametrize(
    ("url", "port", "secured"),
    [("https://hooks.company.com/in", 443, ["hooks.company.com"]), ("http://hooks.company.com/in", 80, [])],
)
def test_the_proxy_is_told_the_judged_address_and_the_tunnel_is_used_again(url, port, secured):
    answer, network = attempt(url, times=2)
    assert (answer.status, answer.address, network.dialed, network.secured) == (
        200,
        PUBLIC,
        [(PROXY, 3128)],
        secured,
    )
    connect, first, second = (said for _, said in network.heard)
    assert connect == b"CONNECT 8.8.8.8:%d HTTP/1.1\r\nhost: 8.8.8.8:%d\r\n\r\n" % (port, port)
    assert (
        first == second
        and first.startswith(b"POST /in HTTP/1.1\r\nhost: hooks.company.com\r\n")
        and first.endswith(BODY)
    )


@pytest.mark.parametrize("url", ["https://private.company.com/", "https://127.0.0.1/"])
def test_a_forbidden_target_is_refused_before_the_proxy_hears_of_it(url):
    answer, network = attempt(url)
    assert (answer.failure, network.dialed) == ("address_forbidden", [])


@pytest.mark.parametrize("setting", [f"http://{PROXY}:3128", "http://proxy:3128"])
def test_an_endpoint_that_is_the_proxy_itself_is_refused(setting):
    answer, network = attempt(
        "http://self.company.com:3128/", setting=setting, allow_networks=("10.0.0.0/8",)
    )
    assert (answer.failure, network.dialed) == ("address_forbidden", [])


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (b"HTTP/1.1 407 Authenticate\r\nproxy-authenticate: Basic\r\n\r\n", "proxy_failure"),
        (b"HTTP/1.1 302 Found\r\nlocation: http://x/\r\n\r\n", "proxy_failure"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "proxy_failure"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OPENED, "proxy_failure"),
        (b"SSH-2.0\r\n\r\n", "proxy_failure"),
        (b"HTTP/2 200\r\n\r\n", "proxy_failure"),
        (b"HTTP/1.1 200 OK\n\n\r\n\r\n", "proxy_failure"),
        (b"HTTP/1.1 200 OK\r\nx: \x00\r\n\r\n", "proxy_failure"),
        (b"HTTP/1.1 200 OK\r\n folded\r\n\r\n", "proxy_failure"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "proxy_failure"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "proxy_failure"),
        (OPENED + OK, "proxy_failure"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 9000, "proxy_failure"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "proxy_failure"),
        (OSError(111, "refused"), "proxy_failure"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "proxy_refused"),
        (b"HTTP/1.1 405 No\r\ncontent-length: 3\r\n\r\nno!", "proxy_refused"),
        (b"HTTP/1.1 502 Bad\r\n\r\n", "proxy_unreachable"),
        (b"HTTP/1.0 503 \r\n\r\n<html>", "proxy_unreachable"),
    ],
)
def test_a_proxy_that_opens_no_tunnel_has_its_name_and_nothing_is_sent(reply, failure):
    answer, network = attempt(reply=reply)
    assert (answer.failure, answer.unknown, answer.status) == (failure, False, None)
    assert (answer.headers, answer.body) == (b"", b"")
    assert not any(BODY in said for _, said in network.heard)


def test_a_proxys_word_on_an_endpoint_is_charged_as_what_it_means():
    assert {failure: BY_FAILURE[failure] for failure in BY_FAILURE if failure.startswith("proxy")} == {
        "proxy_unreachable": "unreachable",
        "proxy_refused": "blocked",
        "proxy_failure": "unreachable",
    }
    assert "proxy_failure" in OURS and not {"proxy_unreachable", "proxy_refused"} & OURS


def test_what_is_no_answer_is_not_waited_for_to_its_end():
    answer, _ = attempt(reply=b"220 mail ESMTP", connect_timeout_s=2.0)
    assert answer.failure == "proxy_failure" and answer.total_us < 1_000_000


def test_a_silent_proxy_is_given_up_in_time():
    answer, _ = attempt(reply=b"", connect_timeout_s=0.1)
    assert answer.failure == "proxy_failure" and answer.total_us < 1_000_000


@pytest.mark.parametrize(
    "script",
    [(Hear(), Drip(b"HTTP/1.1 200 Connection established", 0.02)), (Hear(), Say(b"HTTP/1.1 200 OK\r\n"), Drip(b"x: y\r\n" * 99, 0.02)),
     (Hear(), Say(b"HTTP/1.1 200 OK\r\nx: "), Flood(b"y" * 65_536)), (Hear(), Say(b"HTTP/1.1 200 O")), (Hear(), Reset()), (Reset(),),
     (Flood(b"y" * 65_536),), (Hear(), Hang()), (Hang(),)],
)  # fmt: skip
def test_a_hostile_proxy_on_a_real_socket_gains_neither_time_nor_memory(script):
    async def case():
        receiver = Receiver(script)
        async with receiver.running():
            wire = client(proxy=f"http://127.0.0.1:{receiver.port}")
            answer = await post(wire, "https://127.0.0.2:21001/", connect_timeout_s=0.2)
            await wire.close()
            await until(lambda: not wire.shared.pool.open)
            return answer

    answer = asyncio.run(case())
    assert (answer.failure, answer.status, answer.unknown) == ("proxy_failure", None, False)
    assert answer.total_us < 700_000


def test_a_proxys_credentials_go_to_the_proxy_alone():
    _, network = attempt(setting=f"http://us%40er:pass@{PROXY}:3128")
    connect, request = (said for _, said in network.heard)
    assert b"proxy-authorization: Basic dXNAZXI6cGFzcw==\r\n" in connect and b"authorization" not in request


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.0.0.9:3128",
        "https://x:1",
        "socks5://x:1",
        "http://x",
        "http://x:0",
        "http://x:99999",
        "http://x:1/path",
    ],
)
def test_a_setting_that_is_no_proxy_stops_the_program_at_its_start(text):
    with pytest.raises(SettingsError):
        proxy.read(text)
