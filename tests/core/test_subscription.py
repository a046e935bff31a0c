"""Filters: exact, prefix, everything."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import limits
from surehook.core.errors import Problem
from surehook.core.subscription import Matcher, check_event_type, check_filters, is_event_type, wants


@pytest.mark.parametrize(
    ("filters", "event_type", "wanted"),
    [
        (["document.signed"], "document.signed", True),
        (["document.signed"], "document.signed.late", False),
        (["document.signed"], "document", False),
        (["document.*"], "document.signed", True),
        (["document.*"], "document.signed.late", True),
        (["document.*"], "document", False),
        (["document.*"], "documents.signed", False),
        (["document.*"], "Document.signed", False),
        (["*"], "anything.at-all", True),
        (["a", "b.*"], "b.c", True),
        ([], "a", False),
    ],
)
def test_a_filter_is_exact_a_prefix_or_everything(filters, event_type, wanted):
    assert wants(filters, event_type) is wanted


SEGMENTS = ("a", "b")
TYPES = [".".join(parts) for n in (1, 2, 3) for parts in itertools.product(SEGMENTS, repeat=n)]
FILTERS = ["*", *TYPES, *(f"{each}.*" for each in TYPES)]


def by_segments(given_filter, event_type):
    """The same rule said differently: compare segment by segment."""
    wanted, parts = given_filter.split("."), event_type.split(".")
    if wanted == ["*"]:
        return True
    if wanted[-1] == "*":
        return len(parts) >= len(wanted) and parts[: len(wanted) - 1] == wanted[:-1]
    return parts == wanted


def test_all_small_filters_and_types_agree_with_the_rule_by_segments():
    for given_filter, event_type in itertools.product(FILTERS, TYPES):
        assert wants([given_filter], event_type) is by_segments(given_filter, event_type), (
            given_filter,
            event_type,
        )


def test_filters_are_kept_in_order():
    assert check_filters(["document.*", "a-b.c_d", "*"]) == ("document.*", "a-b.c_d", "*")


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ([], "event_types"),
        ("abc", "event_types"),
        (["a"] * 101, "event_types"),
        (["a", ""], "event_types.1"),
        (["a", "b", "a"], "event_types.2"),
        (["a", 5], "event_types.1"),
        (["a", None], "event_types.1"),
        (["*.a"], "event_types.0"),
        (["a*"], "event_types.0"),
        (["a.*.b"], "event_types.0"),
        (["a..b"], "event_types.0"),
        ([".a"], "event_types.0"),
        (["a."], "event_types.0"),
        (["a.**"], "event_types.0"),
        (["a b"], "event_types.0"),
        (["a\n"], "event_types.0"),
        (["é"], "event_types.0"),
        (["(a+)+$"], "event_types.0"),
        (["a" * 131], "event_types.0"),
    ],
)
def test_a_bad_filter_is_refused_at_its_place(filters, field):
    with pytest.raises(Problem) as caught:
        check_filters(filters)
    assert (caught.value.code, caught.value.field) == ("invalid_filter", field)


@pytest.mark.parametrize("name", ["a", "document.signed", "A-1_b.c", "a" * 128])
def test_event_types_are_segments_joined_by_full_stops(name):
    assert check_event_type(name) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "a.", ".a", "a..b", "a b", "a\x00", "a\n", "é", "a/b", "*", "a.*", "a" * 129, "x" * 10_240],
)
def test_other_event_types_are_refused(name):
    assert not is_event_type(name)
    with pytest.raises(Problem) as caught:
        check_event_type(name)
    assert (caught.value.code, caught.value.field) == ("invalid_event_type", "type")


@given(st.text(max_size=200))
def test_every_accepted_type_is_its_own_filter(name):
    if is_event_type(name):
        assert check_filters([name, f"{name}.*"])
        assert wants([name], name)


def test_a_matcher_says_who_wants_an_event_in_order_and_remembers():
    matcher = Matcher([("first", ["*"]), ("second", ["a.*"]), ("third", ["b"]), ("fourth", [])])
    assert matcher.match("a.b") == ("first", "second")
    assert matcher.match("b") == ("first", "third")
    assert matcher.match("a.b") is matcher.match("a.b")


def test_made_up_event_types_do_not_fill_memory():
    matcher = Matcher([("all", ["*"])])
    for number in range(limits.FILTER_MEMO + 5):
        assert matcher.match(f"t{number}") == ("all",)
    assert len(matcher._memo) <= limits.FILTER_MEMO


def test_made_up_event_types_share_what_the_same_filters_find() -> None:
    """Ten thousand fan-outs to a thousand endpoints would be 80 MB."""
    matcher = Matcher([(number, ["*", "t.*"]) for number in range(1_000)])
    assert len({id(matcher.match(f"t.{number}")) for number in range(100)}) == 1
    assert len({id(matcher.match(f"u{number}")) for number in range(100)}) == 1


def test_fan_outs_of_many_filters_do_not_fill_memory() -> None:
    everybody = 1_000
    matcher = Matcher([(number, ["*", f"t{number}"]) for number in range(everybody)])
    for number in range(everybody + 5):
        assert len(matcher.match(f"t{number}")) == everybody
        assert sum(map(len, matcher._found.values())) <= limits.FILTER_PLACES + everybody


def test_nobody_is_asked_who_does_not_want_a_type() -> None:
    """A batch of a thousand types that nobody wants was a second of the event loop beside two thousand endpoints."""

    class Filter(str):
        asked = 0

        def __eq__(self, other: object) -> bool:
            Filter.asked += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    matcher = Matcher([(number, [Filter(f"wanted.{number}")]) for number in range(100)])
    Filter.asked = 0
    assert matcher.match("made.up") == ()
    assert Filter.asked < 10


@given(
    filters=st.lists(st.lists(st.sampled_from(["*", "a", "a.*", "a.b", "a.b.*", "b", "b.*"]), unique=True), max_size=6),
    event_type=st.sampled_from(["a", "a.b", "a.b.c", "b", "b.a", "ab", "c"]),
)  # fmt: skip
def test_it_finds_whom_asking_each_would_find(filters: list[list[str]], event_type: str) -> None:
    asked = tuple(who for who, each in enumerate(filters) if wants(each, event_type))
    assert Matcher(enumerate(filters)).match(event_type) == asked
