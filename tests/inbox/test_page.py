"""docs/receiving.md says of the providers what the records say, and its examples run."""

import re

import pytest

import surehook
from surehook.core.sources.catalog import PROVIDERS
from surehook.core.sources.proof import proven
from surehook.inbox import sources
from surehook.verify import VerifyError
from tests.docs.pages import PAGES, section
from tests.inbox.signers import NOW, SECRET, SIGNERS, hex_of, stripe

PAGE = "docs/receiving.md"


def rows(heading):
    """The cells of each table row under a heading, without its head."""
    lines = [line for line in section(PAGE, heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(cell):
    return re.findall(r"`([a-z0-9_]+)`", cell)


def example(name):
    """What the marked example defines."""
    code = re.search(rf"<!-- runs: {name} -->\n```python\n(.*?)```", PAGES[PAGE], re.DOTALL)[1]
    scope = {}
    exec(compile(code, PAGE, "exec"), scope)
    return scope


def test_the_table_of_providers_says_what_the_records_say():
    listed = {}
    for cells in rows("Providers, and what the scheme of each proves"):
        for name in names(cells[0]):
            listed[name] = cells
    assert set(listed) == set(PROVIDERS)
    for name, provider in PROVIDERS.items():
        _, _, covered, old, _, before = listed[name]
        assert (set() if covered == "nothing" else set(covered.split(", "))) == proven(provider), name
        assert old == ("taken" if provider.tolerance_s is None else f"{provider.tolerance_s:g}"), name
        assert ("re-fetch" in before) == provider.must_refetch, name


def test_the_table_of_refusals_has_their_status():
    for (code,), status in ((names(cells[0]), cells[1]) for cells in rows("Refusals")):
        assert VerifyError(code, "x").status == int(status)


def test_the_table_of_handshakes_names_those_that_have_one():
    listed = {name for cells in rows("Handshakes and replies") for name in names(cells[0])}
    assert listed == {name for name, provider in PROVIDERS.items() if provider.handshake is not None}


def test_the_table_of_vectors_names_every_provider():
    listed = {name for cells in rows("What the schemes were checked against") for name in names(cells[0])}
    assert listed == set(PROVIDERS) - {"svix", "surehook", "gitlab_token", "hmac", "bearer"}


def test_the_example_of_a_receiver_believes_and_refuses():
    receive, said = example("receive")["receive"], []
    body = SIGNERS["stripe"][3]
    assert (
        receive(body, stripe(body, SECRET, NOW), ["other", SECRET], lambda *words: said.append(words))[0]
        == 401
    )
    assert said[0][0] == "too_old"  # signed years ago: the page's receiver looks at the clock


def test_the_examples_of_sources_make_sources():
    made = example("sources")
    assert [made[name].name for name in ("yousign", "adobe", "partner")] == [
        "yousign",
        "adobe_sign",
        "partner",
    ]
    source = example("provider")["source"]
    body = b'{"event_id":"e1","event":"a.b"}'
    headers = {"acme-signature": f"t={NOW},v1={hex_of('secret of acme', b'%d.' % NOW + body)}"}
    assert source.verify(body, headers, now=NOW).id == "e1"


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
def test_what_a_scheme_leaves_open_is_said(provider):
    whole = proven(provider) >= {"body", "id"} and provider.tolerance_s is not None
    assert whole or provider.caveat


def test_the_package_gives_verify_and_its_error_by_either_way():
    assert surehook.VerifyError is VerifyError is sources.VerifyError
    assert surehook.verify.verify is not None
    assert callable(surehook.verify)
    with pytest.raises(AttributeError):
        surehook.nothing_of_this_name  # noqa: B018
