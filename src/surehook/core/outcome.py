"""The table of outcomes (docs/delivery-contract.md, "Answering") as a function of one answer.

seen                                              outcome       retried   breaker
success class                                     delivered     -         ok
410 / another status the policy calls terminal    gone/rejected no        ok
problem+json with retryable: false                rejected      no        ok (a key code: trips it)
429; 502, 503, 504 with Retry-After               throttled     yes       fail
3xx that is no success, one redirect too many     redirected    yes       ok
other status                                      refused       yes       5xx fail, else ok
no answer in time                                 timed_out     yes       fail, not counted in the first lane
reset or EOF before an answer                     broken        yes       fail
DNS, refused, connect timeout, TLS                unreachable   yes       fail
no OAuth2 token                                   unreachable   yes       fail, no token in time as no answer
not HTTP, too much of it                          garbled       yes       fail
address not allowed                               blocked       yes       not counted
"""

from __future__ import annotations

from msgspec import Struct

from surehook.core import retry_after, verdict
from surehook.core.model import FIRST, Lane, OutcomeName
from surehook.core.policy import Policy

OK, FAIL, UNCOUNTED = "ok", "fail", "uncounted"

BY_FAILURE: dict[str, OutcomeName] = {
    **dict.fromkeys(
        ("dns_nxdomain", "dns_failure", "dns_timeout", "connect_refused", "connect_timeout",
         "connect_unreachable", "connect_reset", "tls_expired", "tls_name", "tls_untrusted", "tls_protocol",
         "tls_client_certificate", "tls_timeout", "proxy_unreachable", "proxy_failure", "no_resources"), "unreachable",
    ),
    **dict.fromkeys(
        ("token_timeout", "token_unreachable", "token_refused", "token_failed", "token_redirected",
         "token_unusable"), "unreachable",
    ),
    **dict.fromkeys(("url_forbidden", "address_forbidden", "peer_mismatch", "proxy_refused", "token_forbidden"), "blocked"),
    "timeout": "timed_out",
    **dict.fromkeys(("reset", "eof", "aborted"), "broken"),
    **dict.fromkeys(
        ("not_http", "bad_status", "bad_headers", "bad_framing", "headers_too_large",
         "too_many_informational", "switched_protocols"), "garbled",
    ),
    **dict.fromkeys(("redirect_limit", "redirect_forbidden"), "redirected"),
}  # fmt: skip
# The attempt's time, or the part of it that is for connecting, ran out. Where it was spent is no matter to a receiver.
LATE = frozenset({"timeout", "dns_timeout", "connect_timeout", "tls_timeout", "token_timeout"})
# Our own trouble is never charged to the endpoint.
OURS = frozenset({"no_resources", "proxy_failure", "aborted"})

VERDICT_STATUSES = frozenset({400, 401, 403, 409, 413, 422})
KEY_CODES = frozenset({"bad_signature", "unknown_key"})
THROTTLE_WITH_HEADER = frozenset({502, 503, 504})


class Outcome(Struct, frozen=True, gc=False):
    """`retry_after_s` is what the receiver asked for, uncapped; `key` marks trouble with the signing key; `late`: time ran
    out, also while resolving, connecting or in TLS."""

    name: OutcomeName
    breaker: str
    terminal: bool = False
    retry_after_s: float | None = None
    key: bool = False
    ours: bool = False  # our own trouble: spends no retry
    late: bool = False


DELIVERED = Outcome("delivered", OK)
REDIRECTED = Outcome("redirected", OK)


def succeeds(policy: Policy) -> frozenset[int]:
    """The statuses a policy calls a success, spelled out once so that the hot path only looks up."""
    statuses: set[int] = set()
    for entry in policy.success:
        if entry.endswith("xx"):
            statuses.update(range(int(entry[0]) * 100, int(entry[0]) * 100 + 100))
        else:
            statuses.add(int(entry))
    return frozenset(statuses)


def classify(
    *,
    policy: Policy,
    success: frozenset[int],
    lane: Lane,
    probe: bool,
    status: int | None,
    failure: str | None,
    headers: bytes,
    body: bytes,
    now: int,
) -> Outcome:
    """The outcome of one attempt. `headers` and `body` are what was kept of the answer; `now` dates a Retry-After."""
    if failure is not None:
        return _failed(BY_FAILURE[failure], failure, lane=lane, probe=probe)
    assert status is not None, "an answer has a status or a failure"
    if status in success:
        return DELIVERED
    if status in policy.terminal:
        return Outcome("gone" if status == 410 else "rejected", OK, terminal=True)
    if policy.obey_verdicts and status in VERDICT_STATUSES:
        word = verdict.verdict(headers, body)
        if word is not None and not word.retryable:
            key = word.code in KEY_CODES
            return Outcome("rejected", OK, terminal=not key, key=key)
    asked = retry_after.from_headers(headers, now)
    if status == 429 or (status in THROTTLE_WITH_HEADER and asked is not None):
        return Outcome("throttled", FAIL, retry_after_s=asked)
    if 300 <= status < 400:
        return REDIRECTED
    return Outcome("refused", FAIL if status >= 500 else OK)


def _failed(name: OutcomeName, failure: str, *, lane: Lane, probe: bool) -> Outcome:
    if name == "redirected":
        return REDIRECTED
    if failure in OURS:
        return Outcome(name, UNCOUNTED, ours=True)
    if name == "blocked":
        return Outcome(name, UNCOUNTED)
    # A 2 s endpoint is slow, not dead: the retry lane, with its long timeout, decides. So with its token server.
    if (name == "timed_out" or failure == "token_timeout") and lane == FIRST and not probe:
        return Outcome(name, UNCOUNTED, late=True)
    return Outcome(name, FAIL, late=failure in LATE)
