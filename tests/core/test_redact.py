"""What may be shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import redact


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_•••"),
        ("whsk_abc", "whsk_•••"),
        ("sk_live_abc", "sk_•••"),
        ("hunter2", "•••"),
        ("", "•••"),
    ],
)
def test_of_a_secret_only_its_prefix_is_shown(text, shown):
    assert redact.secret(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://example.com/hook", "https://example.com/hook"),
        ("https://example.com:8443/hook?token=abc&x=1#frag", "https://example.com:8443/hook?•••"),
        ("https://user:pass@example.com/hook", "https://•••@example.com/hook"),
        ("https://user@example.com", "https://•••@example.com"),
        ("http://[::1]:80/a?b", "http://[::1]:80/a?•••"),
        ("/relative?token=abc", "/relative"),
        ("not a url with token", "•••"),
        ("//user:pass@example.com/", "•••"),
        ("https://example.com:99999/", "•••"),
        ("http://[", "•••"),
        ("mailto:secret@example.com", "•••"),
        ("", "•••"),
    ],
)
def test_of_a_url_user_info_and_query_are_hidden(text, shown):
    assert redact.url(text) == shown


def test_header_values_are_hidden_unless_known_to_be_harmless():
    assert redact.headers(
        {
            "Content-Type": "text/plain",
            "Authorization": "Bearer x",
            "X-Whatever": "y",
            "Location": "https://a.b/?t=1",
        }
    ) == {
        "Content-Type": "text/plain",
        "Authorization": "•••",
        "X-Whatever": "•••",
        "Location": "https://a.b/?•••",
    }


def test_of_a_request_the_endpoints_own_values_are_hidden_whatever_their_name():
    said = b"webhook-id: evt_1\r\nwebhook-timestamp: 7\r\nwebhook-signature: v1,abc\r\nuser-agent: surehook/1\r\n"
    private = b"X-Region: eu: west\r\nuser-agent: theirs\r\nAuthorization: Bearer s3cret\r\n"
    assert redact.request(said, private) == {
        "webhook-id": "evt_1", "webhook-timestamp": "7", "user-agent": "•••", "x-region": "•••", "authorization": "•••",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb", "a\\r\\nb"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\u202eevil", "\\u202eevil"),
        ("\x00", "\\x00"),
        ("\ud800", "\\ud800"),
        ("żółć 👍", "żółć 👍"),
    ],
)
def test_controls_in_a_strangers_text_are_escaped(text, shown):
    assert redact.printable(text) == shown


def test_a_strangers_text_is_bounded():
    assert len(redact.printable("x" * 10_000)) == 512


@given(st.text(max_size=60))
def test_any_text_can_be_shown_and_never_breaks_a_line(text):
    for shown in (
        redact.url(text),
        redact.printable(text),
        redact.header("server", text),
        redact.secret(text),
    ):
        shown.encode("utf-8")
        assert "\n" not in shown and "\r" not in shown and "\x1b" not in shown


@given(st.text("abcdefghijklmnop", min_size=4, max_size=12))
def test_a_query_value_never_appears(token):
    assert token not in redact.url(f"https://h.example/P?Q={token}".replace("example/", "EXAMPLE/"))
