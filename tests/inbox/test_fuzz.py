"""Noise: the bounded form of `make fuzz-verify`, and Hypothesis looking for what a mutation does not reach."""

from hypothesis import given, settings
from hypothesis import strategies as st

from surehook.core.sources.catalog import PROVIDERS
from tests.budget import examples
from tests.inbox.fuzz import Inputs, judged
from tests.inbox.signers import NOW, SECRET, SIGNERS

ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=60) | st.binary(max_size=60)
VALUES = st.recursive(
    ANY, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY, inner, max_size=3), max_leaves=6
)


def test_of_near_misses_only_verify_errors_come_out():
    inputs, verdicts = Inputs(7), set()
    for _ in range(5_000):
        verdicts.add(judged(*inputs.next()))
    assert {
        "believed",
        "bad_signature",
        "missing_header",
        "duplicate_header",
        "bad_secret",
        "bad_setup",
    } <= verdicts


@settings(max_examples=examples(300), deadline=None)
@given(
    provider=st.sampled_from(sorted(PROVIDERS)) | ANY,
    body=VALUES,
    headers=VALUES,
    secret=VALUES,
    now=ANY,
    tolerance_s=ANY,
    url=ANY,
    known=VALUES,
)
def test_whatever_is_handed_in_only_a_verify_error_comes_out(provider, **given):
    judged(provider, {**given, "now": NOW if given["now"] is None else given["now"]})


@settings(max_examples=examples(300), deadline=None)
@given(
    name=st.sampled_from(["hmac", "meta", "yousign", "docusign", "zoom", "slack"]),
    body=st.binary(max_size=200),
)
def test_whatever_is_signed_only_a_verify_error_comes_out(name, body):
    headers = SIGNERS[name][0](body, SECRET, NOW)
    judged(name, {"body": body, "headers": headers, "secret": SECRET, "now": NOW})
