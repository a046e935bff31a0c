"""The examples for each framework, in the README, in docs/receiving.md and in docs/django.md, take signed requests."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from surehook.inbox import Inbox
from surehook.verify import sign
from tests.docs.pages import ROOT, examples, first_column, section
from tests.inbox.house import SECRET
from tests.inbox.signers import hex_of, stripe

README, RECEIVING, DJANGO = "README.md", "docs/receiving.md", "docs/django.md"
Ask = Callable[[bytes, dict[str, str]], int]  # body and headers → status


def over_asgi(app: Any, path: str) -> Ask:
    def ask(body: bytes, headers: dict[str, str]) -> int:
        async def go() -> int:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as client:
                return (await client.post(path, content=body, headers=headers)).status_code

        return asyncio.run(go())

    return ask


def over_wsgi(app: Any, path: str) -> Ask:
    def ask(body: bytes, headers: dict[str, str]) -> int:
        with httpx.Client(transport=httpx.WSGITransport(app), base_url="http://app") as client:
            return client.post(path, content=body, headers=headers).status_code

    return ask


def over_django(urlpatterns: list[Any], path: str) -> Ask:
    from django.test import Client, override_settings

    def ask(body: bytes, headers: dict[str, str]) -> int:
        with override_settings(ROOT_URLCONF=tuple(urlpatterns)):
            client = Client(enforce_csrf_checks=True, headers=headers)
            return client.post(path, body, content_type="application/json").status_code

    return ask


def run(page: str, *names: str, **given: Any) -> dict[str, Any]:
    """What these examples of a page define, one after the other."""
    scope: dict[str, Any] = {"__name__": "example", **given}
    for name in names:
        exec(compile(examples(page)[name], f"{page}:{name}", "exec"), scope)
    return scope


# -- verifying ----------------------------------------------------------------------------------------------


STRIPE = "whsec_of_stripe_that_is_long_enough"
BODY = b'{"id": "evt_1", "object": "event", "type": "invoice.paid", "created": 1764000000, "data": {"object": {}}}'


@pytest.mark.parametrize("framework", ["fastapi", "starlette", "flask", "django", "wsgi", "asgi"])
def test_each_framework_gives_the_bytes_as_they_were_signed(framework):
    if framework == "django":
        from tests.inbox import djangos  # noqa: F401 (it sets Django up)
    told: list[Any] = []
    scope = run(RECEIVING, "receive", framework, SECRETS=[STRIPE], print=lambda *words: told.append(words))
    if framework == "django":
        ask = over_django(scope["urlpatterns"], "/hooks")
    else:
        over = over_wsgi if framework in ("flask", "wsgi") else over_asgi
        ask = over(scope["app"], "/hooks")
    headers = stripe(BODY, STRIPE, int(time.time()))
    assert ask(BODY, headers) == 200, told
    assert told == []
    assert ask(BODY + b" ", headers) == 401
    assert told[0][0] == "bad_signature"


# -- the inbox ----------------------------------------------------------------------------------------------


DOCUMENT = b'{"type": "document.signed", "data": {"document": "doc_1"}}'


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with the inbox's tables and one contract."""
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    inbox = Inbox(url)
    inbox.create_tables()
    with inbox.store.engine.begin() as connection:
        connection.execute(text("create table contracts (id varchar(20), state varchar(20))"))
        connection.execute(text("insert into contracts values ('doc_1', 'sent')"))
    inbox.close()
    return url


@pytest.mark.parametrize("framework", ["fastapi", "starlette", "flask"])
def test_each_framework_of_the_readme_receives_into_the_inbox(framework, url):
    scope = run(README, "inbox", framework, DATABASE=url, SECRET=SECRET)
    inbox = scope["inbox"]
    ask = (over_wsgi if framework == "flask" else over_asgi)(scope["app"], "/hooks/surehook")
    headers = sign(SECRET, "evt_1", DOCUMENT)
    assert [ask(DOCUMENT, headers), ask(DOCUMENT, headers), ask(DOCUMENT + b" ", headers)] == [200, 200, 401]
    inbox.work()
    with inbox.store.engine.begin() as connection:
        assert connection.execute(text("select state from contracts")).scalar() == "signed"
    assert inbox.counts() == {"surehook": {"finalized": 1}}
    inbox.close()


@pytest.mark.parametrize(("door", "over"), [("asgi", over_asgi), ("wsgi", over_wsgi)])
def test_the_doors_stand_alone_too(door, over, url):
    inbox = run(README, "inbox", DATABASE=url, SECRET=SECRET)["inbox"]
    assert over(getattr(inbox, door)(), "/surehook")(DOCUMENT, sign(SECRET, "evt_1", DOCUMENT)) == 200
    inbox.close()


def test_django_of_the_readme_receives_into_the_inbox(tmp_path):
    from tests.inbox import djangos

    with djangos.at(f"sqlite:///{tmp_path / 'shop.db'}"):
        scope = run(README, "django")
        ask = over_django(scope["urlpatterns"], "/hooks/partner")
        headers = sign(SECRET, "evt_1", DOCUMENT)
        assert [ask(DOCUMENT, headers), ask(DOCUMENT, headers), ask(DOCUMENT + b" ", headers)] == [
            200,
            200,
            401,
        ]
        assert scope["inbox"].counts() == {"partner": {"accepted": 1}}


# -- docs/django.md -----------------------------------------------------------------------------------------


OLD, NEW = "the old secret of yousign", "the new secret of yousign"
DONE = b'{"event_id":"%s","event_name":"signature_request.done","data":{"signature_request":{"id":"c1"}}}'
SETTINGS = """
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}}
SECRET_KEY, ROOT_URLCONF, ALLOWED_HOSTS, USE_TZ = "k", "urls", ["*"], True
"""
MODELS = """
from django.db import models

class Contract(models.Model):
    id = models.CharField(primary_key=True, max_length=20)
    state = models.CharField(max_length=20, default="sent")
"""
MANAGE = """
import os, sys
from django.core.management import execute_from_command_line
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
execute_from_command_line(sys.argv)
"""
PLAY = """
import asyncio, json, sys
import httpx
from asgi import application
from django.db import connection
from django.test import Client
from shop.models import Contract

with connection.schema_editor() as editor:
    editor.create_model(Contract)
Contract.objects.create(id="c1")
first, second = json.load(sys.stdin)
view = Client().post("/hooks/yousign", first[0], content_type="application/json", headers=first[1]).status_code

async def beside() -> int:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://app") as client:
        return (await client.post("/hooks/yousign", content=second[0], headers=second[1])).status_code

print(view, asyncio.run(beside()))
"""


@pytest.mark.slow
def test_the_pages_project_of_django_receives_processes_and_shows(tmp_path):
    blocks = examples(DJANGO)
    files = {
        "settings.py": f"NEW, OLD = {NEW!r}, {OLD!r}\n{blocks['settings']}{SETTINGS}", "urls.py": blocks["urls"],
        "asgi.py": blocks["asgi"], "manage.py": MANAGE, "play.py": PLAY, "shop/__init__.py": "",
        "shop/models.py": MODELS, "shop/webhooks.py": blocks["webhooks"], "shop/migrations/__init__.py": "",
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    env = os.environ | {"DJANGO_SETTINGS_MODULE": "settings", "PYTHONPATH": str(ROOT / "src")}

    def typed(command: str, said: str = "") -> str:
        command = command.replace("python ", f"{sys.executable} ", 1)
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=env, input=said, text=True, capture_output=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    migrate, work = blocks["commands"].splitlines()
    typed(migrate)
    requests = []
    for event_id, secret in ((b"e1", OLD), (b"e2", NEW)):
        body = DONE % event_id
        requests.append((body.decode(), {"X-Yousign-Signature-256": "sha256=" + hex_of(secret, body)}))
    assert typed("python play.py", json.dumps(requests)).split() == ["200", "200"]
    assert "batch" in typed(work)
    status = "inbox status surehook.inbox.django:inbox --json"
    asked = typed(f'python -c "from surehook.cli.main import run; run()" {status}')
    assert json.loads(asked) == {"yousign": {"finalized": 2}}


def test_the_table_of_djangos_settings_is_that_of_the_code():
    from surehook.inbox.django.settings import Given
    from tests.inbox import djangos  # noqa: F401 (it sets Django up)

    listed = first_column(section(DJANGO, "Settings"))
    assert sorted(set(listed) - {"SUREHOOK_INBOX"}) == sorted(Given.__struct_fields__)
