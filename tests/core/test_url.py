"""URLs: what is taken, and the one code for each thing that is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surehook.core import address
from surehook.core.errors import Problem
from surehook.core.url import NetworkPolicy, parse
from tests.budget import examples

HERE = Path(__file__).parent
OPEN = NetworkPolicy(allow_http=True)
CLOSED = NetworkPolicy(own_hosts=frozenset({"hooks.our-own.com"}))
LOOPBACK = NetworkPolicy(rules=address.AddressRules(allow=(address.network("127.0.0.0/8"),)), allow_http=True)
PRIVATE = NetworkPolicy(rules=address.AddressRules(allow=(address.network("10.0.0.0/8"),)), allow_http=True)

HOSTS = [tuple(json.loads(line)) for line in (HERE / "ssrf_hosts.jsonl").read_text().splitlines()]
URLS = [tuple(json.loads(line)) for line in (HERE / "ssrf_urls.jsonl").read_text().splitlines()]
NAMES = [line.split("\t") for line in (HERE / "ssrf_names.tsv").read_text().splitlines() if line[0] != "#"]


def verdict(text, policy=OPEN):
    try:
        parse(text, policy)
    except Problem as problem:
        return (
            problem.code if (problem.field, problem.status) == ("url", 422) and problem.hint else "incomplete"
        )
    return "ok"


@pytest.mark.parametrize(("code", "host"), HOSTS, ids=[ascii(row[1])[:40] for row in HOSTS])
def test_every_spelling_of_a_host_gets_its_code(code, host):
    assert verdict(f"http://{host}/x") == code


@pytest.mark.parametrize(("code", "url"), URLS, ids=[ascii(row[1])[:50] for row in URLS])
def test_every_url_gets_its_code(code, url):
    assert verdict(url) == code


@pytest.mark.parametrize(("code", "name"), NAMES, ids=[row[1] for row in NAMES])
def test_names_are_judged_by_their_text(code, name):
    assert verdict(f"https://{name}/", CLOSED) == code


def test_a_url_is_kept_as_it_was_read():
    read = parse("HTTP://Example.COM.:8080?a=%0d%0a", OPEN)
    assert (read.scheme, read.host, read.port, read.path) == ("http", "example.com", 8080, "/?a=%0d%0a")
    assert read.authority == "example.com:8080"
    assert parse("https://[2606:4700:4700:0::1111]/", OPEN).authority == "[2606:4700:4700::1111]"


def test_plain_http_needs_permission():
    assert verdict("http://example.com/", CLOSED) == "https_required"
    assert verdict("http://127.0.0.1/", CLOSED) == "address_forbidden"
    assert verdict("https://example.com/", CLOSED) == "ok"


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.", "app.localhost", "127.0.0.1", "127.9.9.9", "[::ffff:127.0.0.1]"]
)
@pytest.mark.parametrize("port", [80, 6000, 5432, 10080, 21000])
def test_granted_loopback_works_by_address_and_by_name_on_any_high_port(host, port):
    assert verdict(f"http://{host}:{port}/", LOOPBACK) == "ok"


def test_a_grant_opens_no_low_port_and_no_port_elsewhere():
    assert verdict("http://127.0.0.1:25/", LOOPBACK) == "url_port"
    assert verdict("http://127.0.0.1:22/", LOOPBACK) == "url_port"
    assert verdict("http://8.8.8.8:6000/", LOOPBACK) == "url_port"
    assert verdict("http://8.8.8.8:25/", NetworkPolicy(allow_http=True, allow_ports=frozenset({25}))) == "ok"


def test_a_private_grant_opens_private_names_but_no_metadata_and_no_localhost():
    for name in ("receiver", "hooks.corp.local", "x.internal", "a.svc"):
        assert verdict(f"http://{name}:8080/", PRIVATE) == "ok"
    for name in ("metadata", "metadata.google.internal", "localhost", "instance-data.ec2.internal"):
        assert verdict(f"http://{name}/", PRIVATE) == "url_host_name"


def test_the_detail_for_a_literal_names_the_kind_of_address():
    with pytest.raises(Problem, match="link-local"):
        parse("http://169.254.169.254/", OPEN)


PIECES = st.sampled_from(
    ["http", "https", ":", "/", "//", "@", "#", "?", "[", "]", "\\", ".", "127", "0", "1", "0x7f", "%", "a", "xn--",
     "localhost", "::", "ffff", "\n", " ", "．", "１", "é", "-", "8.8.8.8", "example.com", ":80", "\x00", "_"]
)  # fmt: skip


@settings(max_examples=examples(2_000), deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=14).map("".join)).map(str))
def test_any_text_is_a_url_or_a_problem(text):
    for written in (text, "http://" + text):
        code = verdict(written)
        if code == "ok":
            read = parse(written, OPEN)
            assert read.host.isascii() and read.path.isascii() and 0 < read.port < 65536
            assert not any(char <= " " or char in "\\@#" for char in read.host + read.authority)
            again = parse(f"{read.scheme}://{read.authority}{read.path}", OPEN)
            assert (again.origin, again.path) == (read.origin, read.path), (
                "what is sent reads as what was judged"
            )
