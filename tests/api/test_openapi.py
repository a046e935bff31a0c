"""The OpenAPI document and the pages made from it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lab.openapi import PLACE, published
from surehook.api import examples, openapi, problems
from surehook.api.codes import CODES
from surehook.api.policy_schema import PolicyDocument
from surehook.api.table import OPERATIONS
from surehook.core import answers
from tests.api.house import House

OURS = {"/openapi.json", "/docs", "/problems/{code}"}


def test_the_document_and_the_routes_are_the_same_paths_and_methods(house: House) -> None:
    documented = openapi.document()["paths"]
    allowed = {}
    for path in documented:
        asked = house.call("OPTIONS", path.replace("{id}", "x").replace("{name}", "x"))
        allowed[path] = set(asked.headers["allow"].split(", ")) - {"HEAD"}

    assert allowed == {path: {method.upper() for method in methods} for path, methods in documented.items()}
    assert {route.path for route in house.app.routes} == set(documented) | OURS
    ingest = {(call.path, call.method) for call in OPERATIONS if call.handle is None}
    assert ingest == {("/v1/events", "POST"), ("/v1/events/batch", "POST")}


@pytest.mark.parametrize(
    "call", [call for call in OPERATIONS if call.handle is not None], ids=lambda call: call.name
)
def test_every_documented_call_is_answered(house: House, call: Any) -> None:
    path = call.path.replace("{id}", "x").replace("{name}", "x")
    answer = house.call(call.method, path, **({} if call.body is None else {"json": {}}))

    assert answer.status_code not in (405, 500)
    assert str(answer.status_code) in openapi.document()["paths"][call.path][call.method.lower()]["responses"]


def test_the_document_names_only_what_it_defines() -> None:
    text = openapi.document_bytes().decode()
    defined = set(openapi.document()["components"]["schemas"])

    assert set(re.findall(r'"#/components/schemas/(\w+)"', text)) <= defined
    assert not any(name.endswith("Out") for name in defined)
    assert r"\\A" not in text and r"\\Z" not in text


def test_every_answer_has_a_schema_and_every_refusal_a_code(house: House) -> None:
    for path, methods in openapi.document()["paths"].items():
        for method, operation in methods.items():
            answers = operation["responses"]
            assert any(status.startswith("2") for status in answers), (path, method)
            assert "500" in answers and "503" in answers
            assert ("401" in answers) is (operation.get("security") != [])
            for status, answer in answers.items():
                if status[0] in "45":
                    (media,) = answer["content"].values()
                    assert list(answer["content"]) == [problems.MEDIA_TYPE] and media["examples"]


@pytest.mark.parametrize("name", sorted(examples.ANSWERS))
def test_examples_have_the_shape_they_show(name: str) -> None:
    kind: Any = {"Problem": problems.ProblemOut, "PolicyDocument": PolicyDocument}.get(name) or getattr(
        answers, f"{name}Out", None
    )
    example = examples.ANSWERS[name]
    if kind is not None:
        fields = [field.encode_name for field in msgspec.structs.fields(kind)]
        assert list(example) == fields
        msgspec.json.decode(msgspec.json.encode(example), type=kind)


@pytest.mark.parametrize(
    "call", [call for call in OPERATIONS if call.body is not None], ids=lambda call: call.name
)
def test_example_bodies_are_accepted_by_their_calls(call: Any) -> None:
    example = examples.BODIES[call.name]
    for each in example if isinstance(example, list) else [example]:
        msgspec.convert(each, call.body)


def test_the_policy_that_is_shown_has_its_schema(house: House) -> None:
    fields = [field.name for field in msgspec.structs.fields(PolicyDocument)]
    for policy in house.get("/v1/policies")["data"]:
        assert list(policy) == fields
        msgspec.convert(policy, PolicyDocument)


class Links(HTMLParser):
    """Everything a page could make a browser load."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: set[str] = set()
        self.unclosed: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loaded += [value or "" for name, value in attrs if name in ("src", "srcset", "data", "action")]
        if tag in ("link", "script", "img", "iframe"):
            self.loaded.append(tag)
        if tag != "meta":
            self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed.pop() == tag


@pytest.mark.parametrize("path", ["/docs", "/problems/address_forbidden", "/problems/internal"])
def test_pages_are_whole_and_load_nothing(house: House, path: str) -> None:
    response = house.call("GET", path, key=None)
    page = Links()
    page.feed(response.text)

    assert response.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert page.loaded == [] and page.unclosed == [] and "script" not in page.tags


def test_the_reference_shows_every_call_and_every_problem(house: House) -> None:
    text = house.call("GET", "/docs", key=None).text

    assert all(f'id="{call.name}"' in text for call in OPERATIONS)
    assert all(f'href="/problems/{code}"' in text for code in CODES)
    assert all(house.call("GET", f"/problems/{code}", key=None).status_code == 200 for code in CODES)


def test_the_page_for_people_lists_every_call_and_every_problem() -> None:
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    calls = [
        f"| `{call.method} {call.path}` | {', '.join(map(str, call.answers))} | {call.about} |"
        for call in OPERATIONS
    ]
    codes = [f"| `{code}` | {status} | {title} |" for code, (status, title) in CODES.items()]

    assert [line for line in calls + codes if line not in text] == []


def test_the_published_document_is_this_one() -> None:
    assert PLACE.read_bytes() == published(), "`make openapi` writes it anew"
