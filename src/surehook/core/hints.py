# ruff: noqa: E501 (one sentence a line)
"""Hints for a person about a failed attempt: a plain sentence or two for each name of the closed set, and what the
endpoint's policy makes of it, where policies differ.

The texts are for tenants: they tell nothing about our network, and no byte of what a receiver sent.
"""

from __future__ import annotations

from surehook.core import verdict
from surehook.core.instants import say
from surehook.core.model import Attempt
from surehook.core.outcome import KEY_CODES, VERDICT_STATUSES
from surehook.core.policy import Policy

BY_FAILURE: dict[str, str] = {
    "dns_nxdomain": "The host name does not exist or has no address. Check its spelling and its DNS records.",
    "dns_failure": "The host's name servers answered with an error. Check the zone with its DNS provider.",
    "dns_timeout": "The host's name servers did not answer in time.",
    "connect_refused": "Nothing listens on that port. Is the service running, and is the port right?",
    "connect_timeout": "The host did not accept a connection in time. A firewall that drops packets looks like this.",
    "connect_unreachable": "There is no route to the host's address. Hosts with IPv6 addresses only need IPv6 on this side too.",
    "connect_reset": "The host took the connection and dropped it before a request could be sent.",
    "tls_expired": "The certificate is expired or not yet valid. Renew it, and check the host's clock.",
    "tls_name": "The certificate is for another name. It must cover the host in the URL.",
    "tls_untrusted": "The certificate is not signed by a known authority. Serve the full chain, intermediates included.",
    "tls_protocol": "The TLS handshake failed. The host must speak TLS 1.2 or newer on that port, and may be asking for a client certificate.",
    "tls_client_certificate": "The host refused the client certificate, or asks for one. Give the endpoint a certificate and key that the host trusts (`tls`).",
    "tls_timeout": "The TLS handshake did not finish in time.",
    "proxy_unreachable": "The sender's egress proxy could not connect to the host. Is the service running, and is the port right?",
    "proxy_refused": "The sender's egress proxy does not let requests go to that host or port. The operator has to allow it.",
    "proxy_failure": "The sender's egress proxy could not be used. The endpoint is not to blame; the operator has to look.",
    "no_resources": "The sender was short of sockets, memory or name service. The endpoint is not to blame; the operator has to look.",
    "url_forbidden": "The URL is not allowed under the sender's rules any more. Register the endpoint's URL again to see the reason.",
    "address_forbidden": "The URL leads to an address that may not be called, such as a private network. All addresses of a name must be public. Every process that sends judges by its own settings: a worker needs the API's (--dev, allow_networks).",
    "peer_mismatch": "The connection ended at another address than the one that was called. Something on the way redirects traffic.",
    "timeout": "No answer in time. Answer first and work later: store the event, answer 2xx, then process it.",
    "reset": "The connection was reset before an answer. A crashing or restarting server looks like this.",
    "eof": "The connection was closed before an answer. A crashing or restarting server looks like this.",
    "not_http": "What answered does not speak HTTP/1.1. Check the port, and whether it expects https.",
    "bad_status": "The status line has no status between 200 and 599.",
    "bad_headers": "The answer's headers are malformed: lines must end in CRLF, without folding, spaces before colons or control characters.",
    "bad_framing": "The answer contradicts itself about its length: one Content-Length, or Transfer-Encoding: chunked alone.",
    "headers_too_large": "The answer's headers are too large: at most 64 headers, 8 KiB a line, 16 KiB in all.",
    "too_many_informational": "More than five 1xx answers came before a final one.",
    "switched_protocols": "The server switched to another protocol instead of answering.",
    "redirect_limit": "One redirect too many. Register the final URL instead.",
    "redirect_forbidden": "The redirect is not followed: its target is unclear, not allowed, or less secure. Register the final URL instead.",
    "token_timeout": "The token server did not answer in time, so the request was not sent. Check token_url and the server behind it.",
    "token_unreachable": "The token server could not be reached, so the request was not sent. Check token_url, its DNS and its certificate.",
    "token_refused": "The token server refused the client, so the request was not sent. Check client_id, client_secret, scopes, audience and style.",
    "token_failed": "The token server failed or asks to slow down, so the request was not sent. Its logs should say why.",
    "token_redirected": "The token server answered with a redirect, which is never followed, since credentials would go along. Give the final token_url.",
    "token_unusable": "The token server's answer holds no usable token: one JSON object with access_token (visible ASCII) and token_type bearer is expected.",
    "token_forbidden": "The token_url is not allowed or leads to an address that may not be called, such as a private network.",
    "aborted": "The sender stopped before an answer came, as on a restart. The delivery goes on by itself.",
}  # fmt: skip

BY_STATUS: dict[int, str] = {
    400: "The endpoint found the request malformed. Its logs should say which part.",
    401: "The endpoint wants credentials. Give them as the endpoint's authentication, and check the signing secret.",
    403: "The endpoint refuses the sender. Check the signing secret, firewall rules and bot protection.",
    404: "There is nothing at that path. Check the URL.",
    405: "The path does not take this method. The endpoint can be called by POST, PUT or PATCH.",
    408: "The endpoint gave up waiting for the request.",
    410: "The endpoint says it is gone for good.",
    411: "The endpoint wants a Content-Length, which was sent. A proxy in front of it may drop it.",
    413: "The event is larger than the endpoint accepts. Raise its body limit.",
    415: "The endpoint does not take application/json.",
    422: "The endpoint understood the event and refused it.",
    429: "The endpoint asks to slow down.",
    500: "The endpoint's code failed. Its logs should say why.",
    502: "The endpoint's proxy got no good answer from the service behind it.",
    503: "The endpoint says it is not available now.",
    504: "The endpoint's proxy waited too long for the service behind it. Answer first and work later.",
}

HELD = (
    "This arrived, but the URL's breaker is open: its deliveries stay parked until a probe is delivered too, and one is due "
    "now. POST /v1/breakers/close sends them at once."
)
CLIENT_ERROR = "The endpoint refused the request."
SERVER_ERROR = "The endpoint failed."
REDIRECT = "The endpoint answered with a redirect. Register the final URL instead."
UNFOLLOWED = (
    "The endpoint answered with a redirect, which its policy does not follow. Register the final URL instead."
)
NOWHERE = "The endpoint answered with a 3xx that leads nowhere: it names no target, or is no redirect. Register the final URL instead."

GONE = "Its policy takes that for final: a delivery that meets it is a dead letter, and switches the endpoint off until it is activated."
NOT_GONE = "Its policy takes that for a refusal like any other."
FINAL = "Its policy takes that status for final: a delivery that meets it is a dead letter."
BELIEVED = "It says that asking again is of no use, which its policy believes: a delivery that meets that is a dead letter."
UNHEEDED = "It says that asking again is of no use, which its policy does not heed."
KEY = "It says that the signing key is wrong: what is due waits until that is mended, and spends no retry."
OWN_SCHEDULE = "Its policy keeps to its own waits, whatever Retry-After asks for."


def hint(seen: Attempt, policy: Policy | None) -> str | None:
    """The sentences for an attempt, or None where there is nothing to do. `policy` is the endpoint's policy now, None where
    the endpoint is gone."""
    if seen.error is not None:
        return _of_failure(seen.error, policy)
    if seen.outcome == "delivered" or seen.status is None:
        return None
    if 300 <= seen.status < 400 and seen.outcome == "redirected":
        return REDIRECT if policy is None else NOWHERE if policy.redirects else UNFOLLOWED
    said = BY_STATUS.get(seen.status) or _of_class(seen.status)
    rule = _rule(seen, seen.status, policy)
    return said if rule is None else f"{said} {rule}"


def _of_failure(failure: str, policy: Policy | None) -> str:
    said = BY_FAILURE[failure]
    if policy is None:
        return said
    if failure == "timeout":
        first, later = say(policy.timeouts.first * 1000), say(policy.timeouts.retry * 1000)
        patience = first if first == later else f"{first} for a first call and {later} for a retry"
        return f"{said} Its policy waits {patience}."
    if failure == "redirect_limit" and policy.redirects:
        return f"{said} Its policy follows {policy.redirects} in a row."
    return said


def _of_class(status: int) -> str:
    return SERVER_ERROR if status >= 500 else CLIENT_ERROR if status >= 400 else REDIRECT


def _rule(seen: Attempt, status: int, policy: Policy | None) -> str | None:
    """The policy's part in the outcome. The outcome is as judged then; the rest is as the policy is now."""
    if status == 410:
        return GONE if seen.outcome == "gone" else NOT_GONE
    word = verdict.verdict(seen.headers, seen.body) if status in VERDICT_STATUSES else None
    if word is not None and not word.retryable:
        if seen.outcome == "rejected":
            return KEY if word.code in KEY_CODES else BELIEVED
        return UNHEEDED
    if seen.outcome == "rejected":
        return FINAL
    if seen.outcome == "throttled" and policy is not None:
        longest = policy.honour_retry_after
        return (
            f"Its policy waits as long as Retry-After asks, {say(longest * 1000)} at most."
            if longest
            else OWN_SCHEDULE
        )
    return None
