"""What the log says of a failed handler: which it was, what it raised, and where in the application."""

from __future__ import annotations

import asyncio
import logging

import pytest
from sqlalchemy import text

from surehook.core import ids
from surehook.core.errors import Problem
from surehook.inbox import Backoff, tracebacks
from surehook.inbox.log_limits import TEXT_MOST
from tests.inbox.house import House

MISSING = text("select * from missing")


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "surehook.inbox")
    return lambda: [one.getMessage() for one in caplog.records if one.name == "surehook.inbox"]


@pytest.fixture
def house(ground_of, runner):
    house = House(*ground_of("sqlite", "sync"), runner).prepare()
    yield house
    house.close()


def reads(tx):
    return tx.execute(MISSING)


def test_the_first_line_names_the_handler_that_failed_and_its_error(house, told):
    house.on(lambda event: None, name="shop.first")
    house.on(lambda event: {}["contract"], name="shop.second")
    house.receive("evt_1")
    house.work()
    assert told()[0].splitlines()[0].endswith("; shop.second: KeyError: 'contract'")


def test_an_error_of_many_lines_is_one_line_and_bounded_in_the_first(house, told):
    def fails(event):
        raise ValueError("\x1b[2J" + "x" * 1_000 + "\nERROR of shop: all is well")

    house.on(fails, name="shop.done")
    house.receive("evt_1")
    house.work()
    first = told()[0].splitlines()[0]
    assert first.endswith("…") and "shop.done: ValueError: \\x1b[2Jxxx" in first and len(first) < 500


def test_a_commit_that_fails_names_the_handlers(house, told):
    house.inbox.on("partner", name="shop.done")(lambda event, tx: tx.commit())
    house.receive("evt_1")
    house.work()
    assert "(commit_failed)" in told()[0] and "; shop.done: " in told()[0].splitlines()[0]


def test_a_handler_out_of_time_is_one_line_that_names_it_once(house, told):
    house.on(lambda event: house.clock.passes(60), name="shop.slow")
    house.receive("evt_1")
    house.work()
    assert "\n" not in told()[0] and told()[0].count("shop.slow") == 1


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_traceback_begins_at_the_handler_and_ends_in_the_error(ground_of, runner, told, database, kind):
    house = House(*ground_of(database, kind), runner, backoff=Backoff(attempts=1)).prepare()

    def blocking(event, tx):
        reads(tx)

    async def waiting(event, tx):
        await reads(tx)

    house.inbox.on("partner")(blocking if kind == "sync" else waiting)
    house.receive("evt_1")
    house.work()
    (said,) = told()
    (stored,) = house.events()
    house.close()
    handler = "waiting" if kind == "async" else "blocking"
    assert len(said) < TEXT_MOST and "characters left out" not in said
    last = said.split("Traceback (most recent call last):\n")[-1].splitlines()
    assert last[0].startswith(f'  File "{__file__}"') and last[0].endswith(f"in {handler}")
    assert "frames of libraries …" in said and said.count("  File ") < 12
    assert "result_policy.py" not in said
    assert "direct cause" in said, "each error of the chain says what it is"
    assert f"in {handler}" in (stored.error or ""), "2,000 characters of it are stored"


def chained() -> BaseException:
    def beneath() -> None:
        raise LookupError("y" * 9_000)

    try:
        try:
            beneath()
        except LookupError as error:
            raise ValueError("x" * 9_000) from error
    except ValueError as error:
        return error


def test_a_long_message_does_not_cut_the_application_s_frames():
    said = tracebacks.written(chained(), ())
    assert len(said) < TEXT_MOST
    assert "in beneath" in said and "in chained" in said and "LookupError: yyy" in said
    assert said.rstrip().endswith("xxx")


def test_a_traceback_without_a_frame_of_the_application_stays_as_it_is():
    try:
        asyncio.run("no coroutine")  # type: ignore[arg-type]
    except ValueError as error:
        error.__traceback__ = error.__traceback__.tb_next  # type: ignore[union-attr]
        said = tracebacks.written(error, ())
    assert "runners.py" in said and "ValueError: a coroutine was expected" in said


def test_an_application_that_is_installed_is_told_from_its_libraries(tmp_path):
    """As in most images: it is in site-packages, beside them."""
    failing = "def fails(depth):\n    return 1 / 0 if depth == 0 else {}\n"
    calling = "def {name}(depth):\n    return {name}(depth - 1) if depth else inner(0)\n"
    spaces: dict[str, dict[str, object]] = {}
    for name, source in (("lib", calling.format(name="outer")), ("shop", calling.format(name="done"))):
        path = tmp_path / "site-packages" / name / "code.py"
        spaces[name] = {}
        exec(compile(source, str(path), "exec"), spaces[name])
    exec(compile(failing, str(tmp_path / "site-packages" / "shop.py"), "exec"), spaces["lib"])
    spaces["lib"]["inner"] = spaces["lib"]["fails"]
    spaces["shop"]["inner"] = lambda depth: spaces["lib"]["outer"](9)  # type: ignore[operator]
    with pytest.raises(ZeroDivisionError) as caught:
        spaces["shop"]["done"](2)  # type: ignore[operator]
    said = tracebacks.written(caught.value, {"shop"})
    assert said.count("in done") == 3 and "in fails" in said
    assert said.count("in outer") == 2 and "… 8 frames of libraries …" in said


def test_the_errors_of_a_group_are_shown_as_it_is():
    def fails() -> None:
        raise ExceptionGroup("both", [chained(), Problem("bad", "no")])

    with pytest.raises(ExceptionGroup) as caught:
        fails()
    said = tracebacks.written(caught.value, ())
    assert "in fails" in said and "in beneath" in said and "Problem: bad: no" in said
    assert len(said) < TEXT_MOST


def test_a_function_without_a_module_is_of_no_package():
    class Odd:
        __module__ = None  # type: ignore[assignment]

        def __call__(self, event, tx):
            return None

    assert tracebacks.packages([Odd(), test_a_function_without_a_module_is_of_no_package]) == {
        "__main__",
        "tests",
    }


def test_code_that_a_library_has_made_of_text_is_none_of_the_application():
    spaces: dict[str, object] = {}
    exec(compile("def made():\n    return 1 / 0\n", "<sqlalchemy generated made() wrapper>", "exec"), spaces)
    with pytest.raises(ZeroDivisionError) as caught:
        spaces["made"]()  # type: ignore[operator]
    caught.value.__traceback__ = caught.value.__traceback__.tb_next  # type: ignore[union-attr]
    assert tracebacks.written(caught.value, ()).count("  File ") == 1

    def calls() -> None:
        spaces["made"]()  # type: ignore[operator]

    with pytest.raises(ZeroDivisionError) as caught:
        calls()
    assert tracebacks.written(caught.value, ()).count("  File ") == 3


def test_what_had_failed_before_the_handler_was_called_again_is_not_shown():
    """As a batch's transaction, after which each of its handlers is called alone."""

    def handler() -> None:
        raise KeyError("contract")

    def again() -> None:
        try:
            ids.parse("inb", "no id")
        except Problem as before:
            before.__traceback__ = before.__traceback__.tb_next  # type: ignore[union-attr]
            handler()

    with pytest.raises(KeyError) as caught:
        again()
    said = tracebacks.written(caught.value, ())
    assert "During handling" not in said and said.endswith("KeyError: 'contract'\n")
