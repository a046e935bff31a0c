"""The inbox in Django's admin: what its pages show, who may see them, and what comes of what is said there."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

import surehook.inbox.django as app
from surehook.inbox import Backoff, operations
from tests import servers
from tests.inbox import djangos
from tests.inbox.djangos import Inbox, admin_pages
from tests.inbox.house import NOW, Clock, call, message, partner
from tests.inbox.test_documents import STRICT, story, table

EVENTS = "/admin/surehook_inbox/events/"
CONFLICTS = "/admin/surehook_inbox/conflicts/"
BESIDE = "django.contrib."
ADMIN = override_settings(
    INSTALLED_APPS=[
        *(BESIDE + name for name in ("admin", "auth", "contenttypes", "messages", "sessions")),
        "surehook.inbox.django",
        "tests.inbox.shop",
    ],
    MIDDLEWARE=[
        BESIDE + "sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        BESIDE + "auth.middleware.AuthenticationMiddleware",
        BESIDE + "messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    BESIDE + "auth.context_processors.auth",
                    BESIDE + "messages.context_processors.messages",
                ]
            },
        }
    ],
    ROOT_URLCONF="tests.inbox.shop.admin_urls",
    STATIC_URL="/static/",
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
)


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'shop.db'}"
        return
    server = servers.postgres() if request.param == "postgresql" else servers.mariadb()
    with server.database() as there:
        yield there


@pytest.fixture
def inbox(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inbox]:
    """The application's inbox, beside an admin."""
    with ADMIN, djangos.at(url):
        inbox = Inbox([partner(on_conflict="accept")], clock=Clock(), backoff=Backoff(attempts=1, jitter=0))
        monkeypatch.setitem(vars(app), "inbox", inbox)
        yield inbox
        inbox.close()


def person(name: str, *may: str) -> Client:
    """A browser of somebody who has these permissions; `*`: all."""
    users, permissions = apps.get_model("auth", "User").objects, apps.get_model("auth", "Permission").objects
    user = users.create_user(name, is_staff=True, is_superuser="*" in may)
    for one in may:
        user.user_permissions.add(*permissions.filter(codename=one))
    client = Client()
    client.force_login(user)
    return client


def log_entries() -> Any:
    """The admin's own log."""
    return apps.get_model("admin", "LogEntry").objects


def arrived(inbox: Inbox, event_id: str = "evt_1", type: str = "document.signed", **data: Any) -> str:
    """An event that came; its reference."""
    assert inbox.receive(call(*message(event_id, type, **data), at=inbox.clock.now())).status == 200
    return inbox.events(id=event_id)[0].ref


def detail(ref: str) -> str:
    return f"{EVENTS}{ref.replace('_', '_5F')}/change/"


def text(answer: Any) -> str:
    """A page as people read it."""
    assert answer.status_code == 200, (answer.status_code, answer.content[:500])
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.content.decode())).split())


def listed(answer: Any) -> list[str]:
    """The ids of the events of a list, from above."""
    text(answer)
    return re.findall(r"<td>(evt_\w+)</td>", answer.content.decode())


def say(client: Client, where: str, **word: Any) -> str:
    """What the page says after a word was said on it."""
    return text(client.post(where, word, follow=True))


# -- lists ------------------------------------------------------------------------------------------------------


def test_the_list_shows_the_newest_first_and_is_filtered_and_searched(inbox):
    arrived(inbox, "evt_1", "document.signed")
    inbox.clock.passes(1)
    arrived(inbox, "evt_2", "invoice.paid")
    inbox.on("partner", "invoice.*")(lambda event, tx: None)
    inbox.work()
    client = person("ana", "view_events")
    assert listed(client.get(EVENTS)) == ["evt_2", "evt_1"]
    for query, found in (
        ("state=finalized", ["evt_2"]), ("state=parked", ["evt_1"]), ("type=document.*", ["evt_1"]),
        ("source=partner", ["evt_2", "evt_1"]), ("id=evt_1", ["evt_1"]), ("tenant=acme", []), ("id=evt", []),
    ):  # fmt: skip
        assert listed(client.get(f"{EVENTS}?{query}")) == found, query
    assert "Select a valid choice" in text(client.get(f"{EVENTS}?state=odd"))
    assert "Null characters" in text(client.get(f"{EVENTS}?id=%00"))


def test_pages_are_bounded_count_no_table_and_lose_nothing_of_one_millisecond(inbox, monkeypatch):
    monkeypatch.setattr(admin_pages, "PAGE", 3)
    for n in range(4):
        arrived(inbox, f"evt_{n}")
    inbox.clock.passes(1)
    for n in range(4, 12):
        arrived(inbox, f"evt_{n}")
    client = person("ana", "view_events")
    where: str | None = "?source=partner"
    pages = []
    while where:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            answer = client.get(EVENTS + where)
        pages.append(listed(answer))
        ours = [one["sql"] for one in asked if "surehook_inbox_" in one["sql"]]
        assert not [one for one in ours if "count(" in one.lower()]
        older = re.search(r'<a href="([^"]*)">older', answer.content.decode())
        where = html.unescape(older[1]) if older else None
        assert where is None or "source=partner" in where
    assert [len(one) for one in pages] == [3, 3, 3, 3]
    assert [one for page in pages for one in page] == [f"evt_{n}" for n in reversed(range(12))]


def test_a_filter_that_few_events_fit_walks_so_far_and_says_how_far(inbox, monkeypatch):
    monkeypatch.setattr(operations, "LOOKS", 5)
    for n in range(12):
        arrived(inbox, f"evt_{n}", "invoice.paid" if n == 0 else "document.signed")
        inbox.clock.passes(1)
    client = person("ana", "view_events")
    where, said = "?type=invoice.*", []
    while where:
        answer = client.get(EVENTS + where)
        said.append(text(answer))
        older = re.search(r'<a href="([^"]*)">older', answer.content.decode())
        where = html.unescape(older[1]) if older else ""
    assert len(said) == 3
    assert all("Looked through until" in page and "No event fits of those" in page for page in said[:2])
    assert "evt_0" in said[2] and "Looked through" not in said[2]


def test_the_list_of_conflicts_is_in_pages(inbox, monkeypatch):
    monkeypatch.setattr(admin_pages, "PAGE", 2)
    for n in range(3):
        arrived(inbox, f"evt_{n}", n=1)
        inbox.receive(call(*message(f"evt_{n}", n=2), at=NOW))
    client = person("ana", "view_events", "view_conflicts")
    first = client.get(CONFLICTS)
    older = re.search(r'<a href="([^"]*)">older', first.content.decode())
    assert older and "evt_2" in text(first) and "evt_0" not in text(first)
    rest = text(client.get(CONFLICTS + html.unescape(older[1])))
    assert "evt_0" in rest and "older" not in rest
    assert client.get(f"{CONFLICTS}?before=x").status_code == 404


def test_the_list_of_conflicts_leads_to_the_event_with_the_other_body(inbox):
    ref = arrived(inbox, "evt_1", n=1)
    assert inbox.receive(call(*message("evt_1", n=2), at=NOW)).status < 500
    client = person("ana", "view_events", "view_conflicts")
    page = client.get(CONFLICTS)
    assert "evt_1" in text(page) and detail(ref) in page.content.decode()
    shown = text(client.get(detail(ref)))
    assert '"n": 1' in shown and "Another body under this id" in shown and '"n": 2' in shown
    assert person("bob", "view_events").get(CONFLICTS).status_code == 403


# -- one event --------------------------------------------------------------------------------------------------


def test_an_event_is_shown_with_its_body_its_headers_without_secrets_and_its_tries(inbox):
    inbox.on("partner", name="shop.moved")(lambda event, tx: 1 / 0)
    event_id, body = message("evt_1", text="<b>hello</b>\u202e", amount=1.10)
    made = call(event_id, body, at=NOW)
    signature = dict(made.headers)["webhook-signature"]
    made.headers.append(("authorization", "Bearer opensesame"))
    assert inbox.receive(made).status == 200
    inbox.work()
    answer = person("ana", "view_events").get(detail(inbox.events()[0].ref))
    shown = text(answer)
    assert "ZeroDivisionError division by zero" in shown
    assert "Attempts that failed" in shown and "shop.moved" in shown and "state dead" in shown
    assert '"amount": 1.1' in shown
    assert "<b>hello" not in answer.content.decode() and "&lt;b&gt;hello" in answer.content.decode()
    assert "webhook-id evt_1" in shown
    assert "opensesame" not in shown and signature not in shown


def test_a_body_is_cut_where_a_page_ends_and_shown_as_it_came_where_it_is_no_json():
    assert admin_pages.readable(b'{"a":[1.0,2]}') == '{\n  "a": [\n    1.0,\n    2\n  ]\n}'
    assert admin_pages.readable(b"a=1&b=2\x00\xff") == "a=1&b=2\\u0000\\xff"
    long = admin_pages.readable(b"x" * (admin_pages.BODY_BYTES + 1))
    assert (
        long.startswith("x" * admin_pages.BODY_BYTES + "\n… cut") and len(long) < admin_pages.BODY_BYTES + 100
    )
    deep = admin_pages.readable(b"[" * 500 + b"1," * 10_000 + b"1" + b"]" * 500)
    assert len(deep) < admin_pages.BODY_CHARS + 100 and "… cut" in deep
    assert admin_pages.readable(b"[" * 30_000).startswith("[[[")


def test_a_pruned_body_and_an_event_that_is_not_there_are_said(inbox):
    inbox.on("partner")(lambda event, tx: None)
    ref = arrived(inbox)
    inbox.work()
    inbox.clock.passes(40 * 86_400)
    inbox.prune()
    client = person("ana", "view_events")
    assert "The body is past its retention" in text(client.get(detail(ref)))
    other = ref[:-1] + ("0" if ref[-1] != "0" else "1")
    for name in (other, "inb_nothing", "7"):
        assert client.get(detail(name)).status_code == 404


def test_the_history_of_a_followed_document_is_told_and_it_can_be_released_and_granted(inbox):
    inbox.follow(table(**STRICT), "partner")
    inbox.on("partner")(lambda event, tx: None)
    refs = []
    for number in (1, 4):
        event_id, type, data = story("doc_1")[number - 1]
        refs.append(arrived(inbox, event_id, type, **data))
    inbox.work()
    client = person("ana", "view_events", "change_events")
    event_id, type, data = story("doc_2")[0]
    arrived(inbox, event_id, type, **data)
    inbox.work()
    page = text(client.get(detail(refs[0])))
    assert "draft → sent" in page and "doc_2" not in page
    said = say(client, detail(refs[1]), action="grant", reason="signed again")
    assert "rmt_" in said and "a remediation token was granted by ana" in said
    assert "lets doc_1 go on" in say(client, detail(refs[1]), action="release", reason="seen on paper")
    inbox.work()
    assert inbox.explain("doc_1")[-1] == "now signed; number 5 comes next"
    assert "Nothing is held" in say(client, detail(refs[1]), action="release", reason="again")


# -- words ------------------------------------------------------------------------------------------------------


def test_dead_events_are_processed_again_with_a_reason_from_the_list(inbox):
    fails = [True]
    inbox.on("partner")(lambda event, tx: 1 / 0 if fails else None)
    refs = [arrived(inbox, f"evt_{n}") for n in range(2)]
    inbox.work()
    fails.clear()
    client = person("ana", "view_events", "change_events")
    assert "This field is required" in say(client, EVENTS, action="replay", ref=refs)
    assert "Choose the events first" in say(client, EVENTS, action="replay", reason="mended")
    assert "2 of 2: will be processed again" in say(
        client, EVENTS, action="replay", reason="mended", ref=refs
    )
    assert "0 of 2" in say(client, EVENTS, action="replay", reason="twice", ref=refs)  # they are open
    inbox.work()
    assert {(one.state, one.replay) for one in inbox.events()} == {("finalized", 1)}
    runs = apps.get_model("surehook_inbox", "Runs")
    assert set(runs.objects.filter(number=1).values_list("reason", flat=True)) == {"mended"}
    logged = log_entries().values_list("object_id", "change_message", "user__username")
    assert sorted(logged) == sorted((ref, "replay: mended", "ana") for ref in refs)


def test_processed_events_are_finalized_and_rejected_and_others_are_left(inbox):
    inbox.on("partner", final=False)(lambda event, tx: None)
    stands, falls = arrived(inbox, "evt_1"), arrived(inbox, "evt_2")
    inbox.work()
    client = person("ana", "view_events", "change_events")
    assert "1 of 1: finalized" in say(client, detail(stands), action="finalize", reason="checked")
    assert "A rejection needs a code" in say(client, detail(falls), action="reject", reason="no")
    assert "1 of 1: rejected" in say(client, detail(falls), action="reject", reason="no", code="wrong_sum")
    assert "0 of 1" in say(client, detail(falls), action="finalize", reason="yes?")
    assert {one.id: (one.state, one.code) for one in inbox.events()} == {
        "evt_1": ("finalized", None),
        "evt_2": ("rejected", "wrong_sum"),
    }
    assert "Select a valid choice" in say(client, detail(stands), action="release", reason="no document")


# -- permissions ------------------------------------------------------------------------------------------------


def test_who_may_look_may_not_act_and_nobody_adds_or_removes(inbox):
    inbox.on("partner", final=False)(lambda event, tx: None)
    ref = arrived(inbox)
    inbox.work()
    for client in (Client(), person("stranger")):
        for where in (EVENTS, CONFLICTS, detail(ref)):
            assert client.get(where).status_code in (302, 403)
            assert client.post(where, {"action": "finalize", "reason": "x", "ref": ref}).status_code in (
                302,
                403,
            )
    looker = person("ana", "view_events")
    for where in (EVENTS, detail(ref)):
        page = looker.get(where)
        text(page)
        assert "Do it" not in page.content.decode() and 'type="checkbox"' not in page.content.decode()
        assert looker.post(where, {"action": "finalize", "reason": "x", "ref": ref}).status_code == 403
    boss = person("boss", "*")
    assert "Do it" in text(boss.get(EVENTS)) and "Events" in text(boss.get("/admin/"))
    for where in (f"{EVENTS}add/", f"{EVENTS}{ref}/delete/", f"{CONFLICTS}add/"):
        assert boss.get(where).status_code == 404
    models = boss.get("/admin/").context_data["app_list"][-1]["models"]
    assert {(one["perms"]["add"], one["perms"]["delete"]) for one in models} == {(False, False)}
    assert [one["name"] for one in models] == ["Conflicts", "Events"]
    assert boss.post(CONFLICTS, {"action": "delete_selected"}).status_code == 200
    guarded = Client(enforce_csrf_checks=True)
    guarded.cookies = boss.cookies
    assert guarded.post(EVENTS, {"action": "finalize", "reason": "x", "ref": ref}).status_code == 403
    assert inbox.events()[0].state == "processed"


def test_the_app_passes_the_checks_of_django_and_has_nothing_to_migrate(inbox):
    call_command("check", "--fail-level", "WARNING", verbosity=0)
    call_command("makemigrations", "surehook_inbox", check_changes=True, dry_run=True, verbosity=0)


def test_the_log_of_the_admin_leads_to_the_event(inbox):
    inbox.on("partner", final=False)(lambda event, tx: None)
    ref = arrived(inbox)
    inbox.work()
    client = person("boss", "*")
    say(client, detail(ref), action="finalize", reason="checked")
    entry = log_entries().get()
    assert entry.get_change_message() == "finalize: checked"
    assert entry.get_admin_url() == detail(ref)
    assert "state finalized" in text(client.get(entry.get_admin_url()))
