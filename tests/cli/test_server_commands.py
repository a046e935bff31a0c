"""Commands that talk to a server: what they ask, what they print where, and how they end."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from surehook.core.envelope import EventIn
from surehook.core.published import _WrittenItem
from tests.cli.conftest import Run
from tests.cli.fake_api import (
    DELIVERY,
    ENDPOINT,
    EVENT,
    KEY,
    T0,
    attempt,
    delivery,
    endpoint,
    event,
    fake_api,
)
from tests.client.stand_in import answer, stand_in

LISTS = [
    ("endpoints", "/v1/endpoints", endpoint()),
    ("events", "/v1/events", event()),
    ("deliveries", "/v1/deliveries", delivery()),
    ("dead-letters", "/v1/dead-letters", delivery(state="dead")),
    ("tenants", "/v1/tenants", {"id": "acme", "name": "Acme", "strict": False, "created_at": T0}),
    ("event-types", "/v1/event-types", {"name": "a.b", "description": None, "schema": None, "schema_version": "1", "policy": None, "created_at": T0}),
    ("notices", "/v1/notices", {"id": "ntc_1", "at": T0, "kind": "delivery.dead", "tenant": "acme", "endpoint": None, "delivery": None, "detail": "gave up"}),
]  # fmt: skip


@pytest.mark.parametrize(("noun", "path", "entry"), LISTS)
def test_a_list_is_one_document_or_a_table(
    surehook: Run, noun: str, path: str, entry: dict[str, object]
) -> None:
    with fake_api(**{f"GET {path}": [entry] * 3}) as api:
        as_json = surehook(noun, "list", "--json", env=api.env)
        as_table = surehook(noun, "list", env=api.env)
    assert as_json.json == {"data": [entry] * 3, "next": None}
    assert (as_json.code, as_json.err) == (0, "")
    assert len(as_table.out.splitlines()) == 4
    first = str(entry.get("id", entry.get("name")))
    assert first in as_table.out or noun == "notices"


@pytest.mark.parametrize(("noun", "path", "entry"), LISTS)
def test_an_empty_list_says_so_on_stderr(
    surehook: Run, noun: str, path: str, entry: dict[str, object]
) -> None:
    with fake_api(**{f"GET {path}": []}) as api:
        ran = surehook(noun, "list", env=api.env)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.strip()


def test_a_list_goes_on_over_pages_and_says_how_to_get_more(surehook: Run) -> None:
    with fake_api(**{"GET /v1/deliveries": [delivery() for _ in range(500)]}) as api:
        ran = surehook("deliveries", "list", "--limit", "450", "--tenant", "acme", env=api.env)
    assert len(ran.out.splitlines()) == 451
    assert ran.err == "more: --cursor 450\n"
    assert api.asked == [
        "GET /v1/deliveries?tenant=acme&limit=200",
        "GET /v1/deliveries?tenant=acme&limit=200&cursor=200",
        "GET /v1/deliveries?tenant=acme&limit=50&cursor=400",
    ]


def test_filters_reach_the_server_and_durations_become_times(surehook: Run) -> None:
    with fake_api(**{"GET /v1/deliveries": []}) as api:
        surehook(
            "deliveries", "list", "--state", "dead", "--outcome", "timed_out", "--endpoint", ENDPOINT,
            "--since", "900d", "--until", T0, env=api.env,
        )  # fmt: skip
    asked = api.asked[0]
    assert "state=dead" in asked
    assert "outcome=timed_out" in asked
    assert f"endpoint={ENDPOINT}" in asked
    assert "since=20" in asked
    assert "until=2026-11-21T10%3A46%3A00.000Z" in asked


def test_send_publishes_with_every_field(surehook: Run) -> None:
    with fake_api(**{"POST /v1/events": {"id": EVENT, "deliveries": 2}}) as api:
        ran = surehook(
            "send", "document.signed", "--tenant", "acme", "--data", '{"n": 1.10}', "--subject", "doc_1",
            "--key", "doc_1:signed", "--sequence", "3", "--schema-version", "2", env=api.env,
        )  # fmt: skip
    assert (ran.code, ran.out, ran.err) == (0, f"{EVENT}  2 deliveries\n", "")
    assert api.last.headers["idempotency-key"] == "doc_1:signed"
    assert api.last.json == {
        "tenant": "acme",
        "type": "document.signed",
        "subject": "doc_1",
        "sequence": 3,
        "schema_version": "2",
        "data": {"n": 1.1},
    }
    assert b'{"n": 1.10}' in api.last.body


def test_send_reads_a_file_and_standard_input(
    surehook: Run, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io
    import sys

    with open("d.json", "w") as file:
        file.write('{"from": "file"}')
    with fake_api(**{"POST /v1/events": {"id": EVENT, "deliveries": 1}}) as api:
        assert (
            surehook("send", "a", "--tenant", "t", "--data", "@d.json", "--json", env=api.env).json[
                "deliveries"
            ]
            == 1
        )
        assert api.last.json["data"] == {"from": "file"}
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"from": "stdin"}')))
        surehook("send", "a", "--tenant", "t", "--data", "-", env=api.env)
        assert api.last.json["data"] == {"from": "stdin"}


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--data", "{n: 1}", "--tenant", "t"), 5, "is not JSON"),
        (("--data", "@nowhere", "--tenant", "t"), 1, "nowhere"),
        (("--data", "{}"), 2, "which tenant?"),
        (("--data", "{}", "--tenant", "T"), 2, "expected 1 to 64 of a-z"),
        (("--batch", "--data", "[1]", "--key", "k", "--tenant", "t"), 2, "--key is for one event"),
        (("--batch", "--data", '{"a":1}\n{b}', "--tenant", "t"), 5, "line 2 is not JSON"),
        (("--wait", "soon", "--tenant", "t"), 2, "is not a duration"),
        (("--key", "a\nb", "--tenant", "t"), 2, "visible ASCII"),
        (("--key", "\N{CHECK MARK}", "--tenant", "t"), 2, "visible ASCII"),
        (("--data", '"\udcff"', "--tenant", "t"), 2, "not valid UTF-8"),
    ],
)
def test_send_refuses_what_cannot_be_meant_before_it_asks_the_server(
    surehook: Run, args: tuple[str, ...], code: int, words: str
) -> None:
    with fake_api() as api:
        ran = surehook("send", "a", *args, env=api.env)
    assert (ran.code, api.asked) == (code, [])
    assert words in ran.err


@pytest.mark.parametrize("data", ["[{}, 2]", "{}\n\n2\n"])
def test_a_batch_is_an_array_or_json_lines_and_partly_done_is_8(surehook: Run, data: str) -> None:
    reply = answer(202, [{"id": EVENT, "deliveries": 1}, {"code": "bad", "detail": "No.", "status": 422}])
    with fake_api(**{"POST /v1/events/batch": reply}) as api:
        ran = surehook("send", "a", "--batch", "--tenant", "t", "--data", data, env=api.env)
    assert [entry["data"] for entry in api.last.json] == [{}, 2]
    assert ran.code == 8
    assert ran.out == f"{EVENT}  1 delivery\n"
    assert ran.err == "entry 2: No. (bad)\n"


WHOLE = '{"type": "a.b", "tenant": "beta", "data": {"n": 1.10}}'


def test_whole_events_are_no_data_of_a_type(surehook: Run) -> None:
    with fake_api() as api:
        ran = surehook("send", "x.y", "--batch", "--tenant", "t", "--data", WHOLE, env=api.env)
    assert (ran.code, api.asked) == (5, [])
    assert "entry 1 is a whole event" in ran.err
    assert "leave TYPE out" in ran.err


def test_a_batch_of_whole_events_keeps_what_each_says(surehook: Run) -> None:
    reply = answer(202, [{"id": EVENT, "deliveries": 1}] * 2)
    data = WHOLE + '\n{"type": "c", "data": {"type": "t", "data": 1}}'
    with fake_api(**{"POST /v1/events/batch": reply}) as api:
        ran = surehook("send", "--batch", "--tenant", "acme", "--data", data, env=api.env)
        bare = surehook("send", "--batch", "--data", "2", env=api.env)
        single = surehook("send", "--tenant", "acme", env=api.env)
    assert ran.code == 0
    assert [(e["type"], e["tenant"]) for e in api.last.json] == [("a.b", "beta"), ("c", "acme")]
    assert b"1.10" in api.last.body
    assert (bare.code, single.code) == (5, 2)


def test_what_makes_a_whole_event_is_what_the_api_takes() -> None:
    assert frozenset(_WrittenItem.__struct_fields__) == frozenset(EventIn.__struct_fields__)


@pytest.mark.parametrize(
    ("ended", "code"),
    [(("delivered", "delivered"), 0), (("delivered", "dead"), 7), (("delivered", "retrying"), 7), ((), 0)],
)
def test_send_can_wait_for_its_deliveries(surehook: Run, ended: tuple[str, ...], code: int) -> None:
    values = {
        "POST /v1/events": {"id": EVENT, "deliveries": len(ended)},
        f"GET /v1/events/{EVENT}/deliveries": [delivery(state=state) for state in ended],
    }
    with fake_api(**values) as api:
        ran = surehook("send", "a", "--tenant", "t", "--wait", "0s", env=api.env)
    assert ran.code == code
    assert all(state in ran.err for state in ended)


def test_a_delivery_tells_its_whole_story(surehook: Run) -> None:
    attempts = [
        attempt(),
        attempt(number=2, kind="interrupted", outcome=None, unknown=False, hint=None, error=None, next_at=None),
        attempt(number=2, outcome="refused", unknown=False, status=500, error=None, hint="Look at its log.",
                response={"headers": {}, "body": "oh\nno", "truncated": False}, next_at=None),
    ]  # fmt: skip
    values = {
        f"GET /v1/deliveries/{DELIVERY}": delivery(),
        f"GET /v1/deliveries/{DELIVERY}/attempts": attempts,
    }
    with fake_api(**values) as api:
        shown = surehook("deliveries", "show", DELIVERY, env=api.env)
        as_json = surehook("deliveries", "show", DELIVERY, "--json", env=api.env)
    assert as_json.json == {"delivery": delivery(), "attempts": attempts}
    for words in (
        "retrying, attempt 2 in 365", "timed_out? timeout", "It took longer than 1 s.", "total 1000.2 ms",
        "to 203.0.113.7", "interrupted: the server stopped", "refused 500", "Look at its log.", "said  oh no",
        "the receiver may have got it",
    ):  # fmt: skip
        assert words in shown.out, words


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        ({"state": "parked", "reason": "breaker"}, "parked (breaker) after 1 attempt"),
        ({"state": "dead", "finished_at": T0, "attempts": 3}, "dead at "),
        ({"state": "retrying", "due_at": T0}, "retrying, attempt 2 now"),
        ({"state": "cancelled", "reason": "request", "finished_at": T0}, "cancelled (request) at "),
    ],
)
def test_the_headline_says_state_reason_and_time(
    surehook: Run, changes: dict[str, object], headline: str
) -> None:
    values = {
        f"GET /v1/deliveries/{DELIVERY}": delivery(**changes),
        f"GET /v1/deliveries/{DELIVERY}/attempts": [],
    }
    with fake_api(**values) as api:
        out = surehook("deliveries", "show", DELIVERY, env=api.env).out
    assert headline in out.splitlines()[0]
    assert "no attempt yet" in out


def test_a_dead_letter_tells_what_its_last_request_had(surehook: Run) -> None:
    headers = {"webhook-timestamp": "1795262760", "authorization": "•••"}
    dead = delivery(state="dead", finished_at=T0, due_at=None, request_headers=headers)
    values = {f"GET /v1/deliveries/{DELIVERY}": dead, f"GET /v1/deliveries/{DELIVERY}/attempts": [attempt()]}
    with fake_api(**values) as api:
        shown = surehook("deliveries", "show", DELIVERY, env=api.env).out
    for words in ("headers of its last request", "webhook-timestamp: 1795262760", "authorization: •••"):
        assert words in shown, words


def test_a_dismissed_delivery_tells_its_note(surehook: Run) -> None:
    put_away = delivery(
        state="dead", finished_at=T0, due_at=None, dismissal={"note": "settled by telephone", "at": T0}
    )
    with fake_api(
        **{f"GET /v1/deliveries/{DELIVERY}": put_away, f"GET /v1/deliveries/{DELIVERY}/attempts": []}
    ) as api:
        ran = surehook("deliveries", "show", DELIVERY, env=api.env)
    assert "settled by telephone" in ran.out


def test_what_the_receiver_said_is_told_with_its_last_word_first(surehook: Run) -> None:
    receipt = {
        "stage": "rejected", "accepted_at": T0, "processed_at": None, "rejected_at": T0, "finalized_at": None,
        "code": "late", "note": "too  late\n",
    }  # fmt: skip
    values = {
        f"GET /v1/deliveries/{DELIVERY}": delivery(receipt=receipt),
        f"GET /v1/deliveries/{DELIVERY}/attempts": [],
    }
    with fake_api(**values) as api:
        out = surehook("deliveries", "show", DELIVERY, env=api.env).out
    (line,) = [line for line in out.splitlines() if "receipt" in line]
    assert re.search(r"receipt +rejected at \S+ \S+ \(late: too late\), accepted at ", line)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["--receipts"], {}), (["--no-receipts"], None), (["--finalize-within", "1d"], {"finalize_within_s": 86400}),
        (["--receipts", "--finalize-within", "90"], {"finalize_within_s": 90}),
    ],
)  # fmt: skip
def test_receipts_are_asked_for_from_flags(surehook: Run, words: list[str], asked: object) -> None:
    with fake_api(**{f"PATCH /v1/endpoints/{ENDPOINT}": endpoint()}) as api:
        surehook("endpoints", "update", ENDPOINT, *words, env=api.env)
    assert api.last.json == {"receipts": asked}


def test_an_event_is_shown_with_its_data_and_where_it_went(surehook: Run) -> None:
    shown = event(idempotency_key="order-17")
    values = {f"GET /v1/events/{EVENT}": shown, f"GET /v1/events/{EVENT}/deliveries": [delivery()]}
    with fake_api(**values) as api:
        out = surehook("events", "show", EVENT, env=api.env).out
        as_json = surehook("events", "show", EVENT, "--json", env=api.env).json
    for words in ('"n": 1', DELIVERY, "order-17"):
        assert words in out, words
    assert as_json == {"event": shown, "deliveries": [delivery()]}


@pytest.mark.parametrize("words", [("resend",), ("deliveries", "resend"), ("deliveries", "cancel")])
def test_an_act_on_several_deliveries_ends_honestly(surehook: Run, words: tuple[str, ...]) -> None:
    verb = words[-1]
    again = delivery(id="dlv_new", state="scheduled", replay_of=DELIVERY)
    with fake_api(**{f"POST /v1/deliveries/{DELIVERY}/{verb}": again}) as api:
        good = surehook(*words, DELIVERY, env=api.env)
        partly = surehook(*words, DELIVERY, "dlv_none", env=api.env)
        none = surehook(*words, "dlv_none", "dlv_nil", "--json", env=api.env)
    assert (good.code, good.out) == (0, f"dlv_new  scheduled  (again for {DELIVERY})\n")
    assert partly.code == 8
    assert "dlv_none: There is no such thing." in partly.err
    assert (none.code, none.json) == (4, [])


def test_an_endpoint_is_created_from_flags_and_its_secret_shown(surehook: Run) -> None:
    with fake_api(**{"POST /v1/endpoints": endpoint(secret="whsec_x")}) as api:
        ran = surehook(
            "endpoints", "create", "https://acme.example/hooks", "--tenant", "acme", "--events", "a.*, b",
            "--policy", '{"profile": "yousign"}', "--header", "x-a=1", "--description", "first", env=api.env,
        )  # fmt: skip
    assert api.last.json == {
        "tenant": "acme",
        "url": "https://acme.example/hooks",
        "event_types": ["a.*", "b"],
        "policy": {"profile": "yousign"},
        "headers": {"x-a": "1"},
        "description": "first",
    }
    assert "whsec_x" in ran.out
    assert "shown only now" in ran.err


@pytest.mark.parametrize(
    ("args", "body"),
    [
        (("update", ENDPOINT, "--target", "https://b.example"), {"url": "https://b.example"}),
        (("update", ENDPOINT, "--policy", "null"), {"policy": None}),
        (
            ("update", ENDPOINT, "--policy", "signing", "--events", "*"),
            {"policy": "signing", "event_types": ["*"]},
        ),
        (("pause", ENDPOINT), {"status": "paused"}),
        (("resume", ENDPOINT), {"status": "active"}),
    ],
)
def test_an_endpoint_is_changed_by_exactly_what_was_said(
    surehook: Run, args: tuple[str, ...], body: object
) -> None:
    with fake_api(**{f"PATCH /v1/endpoints/{ENDPOINT}": endpoint()}) as api:
        assert surehook("endpoints", *args, env=api.env).code == 0
        assert api.last.json == body


@pytest.mark.parametrize(
    "words",
    [
        ("endpoints", "update", ENDPOINT, "--events", "*", "--url"),
        ("endpoints", "create", "https://acme.example/hooks", "--tenant", "acme", "--url"),
        ("endpoints", "list", "--url"),
        ("breakers", "list", "--url"),
    ],
)
def test_an_address_that_may_be_an_endpoints_is_never_sent_the_key(
    surehook: Run, words: tuple[str, ...]
) -> None:
    with fake_api() as customer:
        ran = surehook(*words, customer.url, env={"SUREHOOK_API_KEY": KEY})
    assert customer.asked == []
    assert ran.code == 2
    assert "--target" in ran.err
    assert "--server" in ran.err


def test_a_custom_request_is_made_from_flags_with_secrets_from_files(surehook: Run, tmp_path: Path) -> None:
    texts = {"auth": '{"type": "bearer", "token": "t"}', "ca": "CA", "cert": "CERT", "key": "KEY"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    files = {name: f"@{tmp_path / name}" for name in texts}
    with fake_api(**{"POST /v1/endpoints": endpoint(), f"PATCH /v1/endpoints/{ENDPOINT}": endpoint()}) as api:
        surehook(
            "endpoints", "create", "https://acme.example/hooks", "--tenant", "acme", "--method", "put",
            "--auth", files["auth"], "--ca", files["ca"], "--client-cert", files["cert"],
            "--client-key", files["key"], env=api.env,
        )  # fmt: skip
        made = api.last.json
        surehook("endpoints", "update", ENDPOINT, "--auth", "null", "--no-tls", env=api.env)
    assert made == {
        "tenant": "acme",
        "url": "https://acme.example/hooks",
        "event_types": ["*"],
        "method": "PUT",
        "authentication": {"type": "bearer", "token": "t"},
        "tls": {"ca": "CA", "client_certificate": "CERT", "client_key": "KEY"},
    }
    assert api.last.json == {"authentication": None, "tls": None}


def test_nothing_to_change_is_a_usage_error(surehook: Run) -> None:
    with fake_api() as api:
        assert surehook("endpoints", "update", ENDPOINT, env=api.env).code == 2
        assert surehook("endpoints", "update", ENDPOINT, "--header", "novalue", env=api.env).code == 2
    assert api.asked == []


def test_a_secret_is_rotated_with_the_overlap_in_seconds(surehook: Run) -> None:
    with fake_api(**{f"POST /v1/endpoints/{ENDPOINT}/rotate-secret": endpoint(secret="whsec_new")}) as api:
        ran = surehook("endpoints", "rotate-secret", ENDPOINT, "--overlap", "2h", "--json", env=api.env)
    assert api.last.json == {"overlap_s": 7200}
    assert ran.json["secret"] == "whsec_new"


@pytest.mark.parametrize(("outcome", "code"), [("delivered", 0), ("unreachable", 7)])
def test_a_test_event_ends_as_it_went(surehook: Run, outcome: str, code: int) -> None:
    with fake_api(**{f"POST /v1/endpoints/{ENDPOINT}/test": attempt(outcome=outcome, unknown=False)}) as api:
        ran = surehook("endpoints", "test", ENDPOINT, env=api.env)
    assert ran.code == code
    assert outcome in ran.out


def test_nothing_is_deleted_without_a_yes(surehook: Run) -> None:
    with fake_api(**{f"DELETE /v1/endpoints/{ENDPOINT}": answer(204)}) as api:
        refused = surehook("endpoints", "delete", ENDPOINT, env=api.env)
        assert (refused.code, api.asked) == (2, [])
        assert "--yes" in refused.err
        assert surehook("endpoints", "delete", ENDPOINT, "--yes", env=api.env).code == 0
    assert api.asked == [f"DELETE /v1/endpoints/{ENDPOINT}"]


def test_tenants_and_event_types_are_created(surehook: Run) -> None:
    values = {
        "POST /v1/tenants": {"id": "acme", "name": "Acme", "strict": True, "created_at": T0},
        "POST /v1/event-types": {"name": "a.b"},
    }
    with fake_api(**values) as api:
        surehook("tenants", "create", "Acme", "--id", "acme", "--strict", env=api.env)
        assert api.last.json == {"id": "acme", "name": "Acme", "strict": True}
        surehook(
            "event-types",
            "create",
            "a.b",
            "--schema",
            '{"type": "object"}',
            "--policy",
            "signing",
            env=api.env,
        )
        assert api.last.json == {"name": "a.b", "schema": {"type": "object"}, "policy": "signing"}


def test_tenants_and_event_types_are_changed_by_what_is_given(surehook: Run) -> None:
    values = {
        "PATCH /v1/tenants/acme": {"id": "acme"},
        "PATCH /v1/event-types/a.b": {"name": "a.b"},
        "POST /v1/event-types": {"name": "a.b"},
    }
    with fake_api(**values) as api:
        surehook("tenants", "update", "acme", "--no-strict", env=api.env)
        assert api.last.json == {"strict": False}
        surehook("tenants", "update", "acme", "--strict", "--name", "Acme", env=api.env)
        assert api.last.json == {"strict": True, "name": "Acme"}
        surehook("event-types", "update", "a.b", "--schema", "null", "--description", "said", env=api.env)
        assert api.last.json == {"schema": None, "description": "said"}
        surehook("event-types", "update", "a.b", "--schema-version", "2", "--policy", "null", env=api.env)
        assert api.last.json == {"schema_version": "2", "policy": None}
        surehook("event-types", "update", "a.b", "--schemas", '{"2": {}}', env=api.env)
        assert api.last.json == {"schemas": {"2": {}}}
        surehook("event-types", "create", "a.b", "--schemas", "null", env=api.env)
        assert api.last.json == {"name": "a.b", "schemas": None}
        for noun, name in (("tenants", "acme"), ("event-types", "a.b")):
            ran = surehook(noun, "update", name, env=api.env)
            assert (ran.code, "nothing to change" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("schemas", "shown"), [(None, "1"), ({}, "1"), ({"2": {}, "0.9": {}}, "1, 0.9, 2"), ({"1": {}}, "1")]
)
def test_a_list_of_event_types_names_their_versions(
    surehook: Run, schemas: dict[str, object] | None, shown: str
) -> None:
    kind = {
        "name": "a.b", "description": None, "schema": None, "schema_version": "1", "policy": None, "schemas": schemas
    }  # fmt: skip
    with fake_api(**{"GET /v1/event-types": {"data": [kind], "next": None}}) as api:
        listed = surehook("event-types", "list", "--wide", env=api.env).out
    assert re.search(rf"a\.b +{re.escape(shown)} ", listed)


def test_an_endpoint_tells_how_many_secrets_sign_and_until_when(surehook: Run) -> None:
    secrets = [
        {"created_at": T0, "signs_until": None, "key_id": "sec_b"},
        {"created_at": T0, "signs_until": T0, "key_id": "sec_a"},
    ]
    path = f"GET /v1/endpoints/{ENDPOINT}"
    with fake_api(**{path: endpoint(), f"{path}/secrets": {"data": secrets, "next": None}}) as api:
        assert "2 sign now: sec_b, sec_a until" in surehook("endpoints", "show", ENDPOINT, env=api.env).out
        as_json = surehook("endpoints", "show", ENDPOINT, "--json", env=api.env)
    assert as_json.json == endpoint()


def test_a_dead_letter_is_dismissed_with_its_note(surehook: Run) -> None:
    with fake_api(**{f"POST /v1/dead-letters/{DELIVERY}/dismiss": answer(204)}) as api:
        ran = surehook("dead-letters", "dismiss", DELIVERY, "--note", "known customer", env=api.env)
    assert (ran.code, api.last.json) == (0, {"note": "known customer"})


def job(**changes: object) -> dict[str, object]:
    return {
        "id": "rpl_1", "filter": {}, "dry_run": False, "state": "done", "matched": 4, "created": 4, "created_at": T0,
        "finished_at": T0,
    } | changes  # fmt: skip


def test_a_dry_run_counts_without_asking(surehook: Run) -> None:
    values = {
        "POST /v1/replays": job(dry_run=True, created=0),
        f"GET /v1/endpoints/{ENDPOINT}": endpoint(),
    }
    with fake_api(**values) as api:
        ran = surehook(
            "replays", "create", "--state", "dead", "--endpoint", ENDPOINT, "--dry-run", "--json", env=api.env
        )
    assert api.last.json == {"filter": {"endpoint": ENDPOINT, "state": "dead"}, "dry_run": True}
    assert ran.json["matched"] == 4


def test_a_replay_wants_a_yes_and_is_waited_for(surehook: Run) -> None:
    values = {"POST /v1/replays": job(state="running"), "GET /v1/replays/rpl_1": job(state="failed")}
    with fake_api(**values) as api:
        assert surehook("replays", "create", "--state", "dead", env=api.env).code == 2
        assert api.asked == []
        assert surehook("replays", "create", "--state", "dead", "--yes", "--wait", env=api.env).code == 7
        started = surehook("replays", "create", "--state", "dead", "--yes", env=api.env)
    assert started.code == 0
    assert "surehook replays show rpl_1" in started.err


def test_lanes_and_breakers_are_tables(surehook: Run) -> None:
    lane = {
        "name": "first",
        "slots": 512,
        "in_flight": 1,
        "held": 5,
        "ready": 2,
        "oldest_due_s": 0.5,
        "scheduled": 3,
        "parked": 4,
    }
    breaker = {
        "tenant": "acme", "url": "https://x", "state": "open", "reason": "failures", "failures": 31, "calls": 40,
        "window_s": 600, "opened_at": T0, "probe_at": T0, "parked": 118,
    }  # fmt: skip
    values = {
        "GET /v1/lanes": {"data": [lane], "next": None},
        "GET /v1/breakers": {"data": [breaker], "next": None},
    }
    with fake_api(**values) as api:
        assert surehook("lanes", env=api.env).out.splitlines()[1].split() == [
            "first",
            "512",
            "1",
            "5",
            "2",
            "0.5",
            "3",
            "4",
        ]
        assert "31 of 40 in 600 s" in surehook("breakers", "list", env=api.env).out
        assert surehook("lanes", "--json", env=api.env).json["data"] == [lane]


OPEN = {
    "tenant": "acme", "url": "https://acme.example/hooks", "state": "open", "reason": "failures", "failures": 31,
    "calls": 40, "window_s": 600, "opened_at": T0, "probe_at": T0, "parked": 118,
}  # fmt: skip
CLOSED = {**OPEN, "state": "closed", "reason": None, "opened_at": None, "probe_at": None}
HELD = {"state": "open", "reason": "failures", "probe_at": T0}


@pytest.mark.parametrize(
    ("verb", "breaker", "said"),
    [
        ("probe", OPEN, "one delivery that is due asks now; 118 are parked"),
        ("probe", CLOSED, "nothing is held back from https://acme.example/hooks"),
        ("close", CLOSED, "118 that were parked for https://acme.example/hooks go out"),
    ],
)
def test_a_breaker_is_probed_and_closed_by_its_url(
    surehook: Run, verb: str, breaker: object, said: str
) -> None:
    with fake_api(**{f"POST /v1/breakers/{verb}": breaker}) as api:
        ran = surehook("breakers", verb, "https://acme.example/hooks", "--tenant", "acme", env=api.env)
    assert ran.code == 0
    assert api.last.json == {"tenant": "acme", "url": "https://acme.example/hooks"}
    assert said in ran.out + ran.err


def test_whoever_resumes_or_resends_behind_an_open_breaker_hears_that_nothing_is_sent_yet(
    surehook: Run,
) -> None:
    parked = delivery(state="parked", reason="breaker", due_at=T0)
    new = delivery(state="scheduled", due_at=T0, replay_of="dlv_" + "9" * 26)
    for answered, held in ((parked, HELD), (new, HELD), (new, None)):
        values = {
            f"PATCH /v1/endpoints/{ENDPOINT}": endpoint(breaker=held),
            f"GET /v1/endpoints/{ENDPOINT}": endpoint(breaker=held),
            f"POST /v1/deliveries/{DELIVERY}/resend": answered,
        }
        with fake_api(**values) as api:
            resumed = surehook("endpoints", "resume", ENDPOINT, env=api.env)
            resent = surehook("deliveries", "resend", DELIVERY, env=api.env)
        assert ("not sent yet" in resumed.err) is (held is not None)
        assert ("not sent yet" in resent.err) is (held is not None)


# -- mistakes a person makes ------------------------------------------------------------------------------


def test_a_missing_key_is_exit_code_3_with_what_to_do(surehook: Run) -> None:
    with fake_api(**{"GET /v1/tenants": []}) as api:
        ran = surehook("tenants", "list", env={"SUREHOOK_URL": api.url})
    assert ran.code == 3
    assert "SUREHOOK_API_KEY" in ran.err


def test_a_flag_beats_the_environment_for_url_and_key(surehook: Run) -> None:
    with fake_api(**{"GET /v1/tenants": []}) as api:
        env = {"SUREHOOK_URL": "http://127.0.0.1:9", "SUREHOOK_API_KEY": "another-key-of-16-chars"}
        assert surehook("tenants", "list", "--server", api.url, "--api-key", KEY, env=env).code == 0


def test_an_unknown_id_is_exit_code_4(surehook: Run) -> None:
    with fake_api() as api:
        assert surehook("events", "show", EVENT, env=api.env).code == 4


def test_no_server_is_exit_code_6_at_once_with_what_to_do(surehook: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    ran = surehook("lanes", "--server", url)
    assert ran.code == 6
    assert "connection refused" in ran.err
    assert "surehook serve" in ran.err


def test_another_program_on_the_port_is_recognised(surehook: Run) -> None:
    with stand_in(b"HTTP/1.1 404 X\r\ncontent-length: 6\r\n\r\n<html>") as other:
        ran = surehook("lanes", "--server", other.url)
    assert ran.code == 4
    assert "no surehook server gives" in ran.err


def test_a_url_without_a_scheme_is_a_usage_error(surehook: Run) -> None:
    ran = surehook("lanes", "--server", "localhost:8080")
    assert ran.code == 2
    assert "expected an http:// or https:// address" in ran.err
