# ruff: noqa: E501 (one sentence a line)
"""What a person can do about a failed attempt: one plain sentence or two for each name of the closed set.

The texts are for tenants: they tell nothing about our network, and no byte of what a receiver sent.
"""

from __future__ import annotations

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
    410: "The endpoint says it is gone for good, so it was switched off. Activate it to deliver again.",
    411: "The endpoint wants a Content-Length, which was sent. A proxy in front of it may drop it.",
    413: "The event is larger than the endpoint accepts. Raise its body limit.",
    415: "The endpoint does not take application/json.",
    422: "The endpoint understood the event and refused it.",
    429: "The endpoint asks to slow down. Deliveries wait as it says.",
    500: "The endpoint's code failed. Its logs should say why.",
    502: "The endpoint's proxy got no good answer from the service behind it.",
    503: "The endpoint says it is not available now.",
    504: "The endpoint's proxy waited too long for the service behind it. Answer first and work later.",
}

REDIRECT = (
    "The endpoint answered with a redirect, which its policy does not follow. Register the final URL instead."
)
HELD = (
    "This arrived, but the URL's breaker is open: its deliveries stay parked until a probe is delivered too, and one is due "
    "now. POST /v1/breakers/close sends them at once."
)
CLIENT_ERROR = "The endpoint refused the request."
SERVER_ERROR = "The endpoint failed."


def hint(failure: str | None, status: int | None, *, succeeded: bool) -> str | None:
    """The sentence for an attempt, or None where there is nothing to do."""
    if failure is not None:
        return BY_FAILURE[failure]
    if succeeded or status is None:
        return None
    if 300 <= status < 400:
        return REDIRECT
    return BY_STATUS.get(status, SERVER_ERROR if status >= 500 else CLIENT_ERROR)
