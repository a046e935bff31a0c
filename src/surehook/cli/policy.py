"""`surehook policy`: the profiles, and any policy as a timeline in clock time. Needs no server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.output import ApiObject, Json, document, line, print_record
from surehook.cli.tables import Column, print_table

if TYPE_CHECKING:
    from surehook.core.policy import Policy

PROFILE_COLUMNS = (
    Column("profile"),
    Column("attempts"),
    Column("last after"),
    Column("timeouts"),
    Column("success", rank=2),
    Column("at the end", rank=1),
)
TIMELINE_COLUMNS = (
    Column("attempt"),
    Column("lane"),
    Column("timeout", rank=2),
    Column("wait"),
    Column("after"),
    Column("clock"),
    Column("jitter", rank=1),
)

app = group("Policies and their timelines in clock time.")

Start = Annotated[
    str | None,
    typer.Option("--at", help="When the first attempt is, RFC 3339 or a duration ago.", show_default="now"),
]


@app.command("list")
def list_policies(json: Json = False) -> None:
    """List the profiles that a policy can be or start from."""
    from surehook.core.policy import policy_json
    from surehook.core.profiles import PROFILES

    if json:
        document({"data": [policy_json(policy) for policy in PROFILES.values()], "next": None})
        return
    rows = []
    for name, policy in PROFILES.items():
        steps = _timeline(policy)
        last = seconds(steps[-1]["after_s"]) if len(steps) > 1 else "–"
        times = f"{seconds(policy.timeouts.first)} / {seconds(policy.timeouts.retry)}"
        rows.append([name, len(steps), last, times, " ".join(policy.success), policy.on_exhausted])
    print_table(PROFILE_COLUMNS, rows)


@app.command()
def show(
    policy: Annotated[str, typer.Argument(metavar="NAME", help="A profile, a JSON object, @file or - .")],
    at: Start = None,
    json: Json = False,
) -> None:
    """Print a policy and what a delivery that never succeeds would live through, step by step."""
    from surehook.cli.human_times import clock_ms, instant_ms
    from surehook.core.policy import policy_json

    chosen = _read(policy)
    start_ms = clock_ms() if at is None else instant_ms(at)
    steps = [dict(step, at=_clock(start_ms, step)) for step in _timeline(chosen)]
    if json:
        document({"policy": policy_json(chosen), "timeline": steps})
        return
    shape = policy_json(chosen)
    print_record({name: value for name, value in shape.items() if name != "headers"}, json=False)
    line()
    rows = [
        [s["attempt"], s["lane"], seconds(s["timeout_s"]), seconds(s["wait_s"]), seconds(s["after_s"]), _at(s), _jitter(s)]
        for s in steps
    ]  # fmt: skip
    print_table(TIMELINE_COLUMNS, rows)
    line(f"then: {chosen.on_exhausted.replace('_', ' ')}")


def _read(written: str) -> Policy:
    """The policy of a profile name or a JSON object."""
    from surehook.cli.errors import NOT_FOUND, CommandError
    from surehook.cli.inputs import text_of
    from surehook.core.policy import parse_policy
    from surehook.core.profiles import PROFILES

    text = text_of(written).strip()
    if not text.startswith("{"):
        if text not in PROFILES:
            raise CommandError(
                f"there is no profile {text!r}", hint="one of " + ", ".join(PROFILES), code=NOT_FOUND
            )
        return PROFILES[text]
    return parse_policy(text.encode(), PROFILES)


def _timeline(policy: Policy) -> list[ApiObject]:
    from surehook.core.preview import timeline

    return timeline(policy)


def _clock(start_ms: int, step: ApiObject) -> str:
    from surehook.core.instants import render

    return render(start_ms + round(step["after_s"] * 1000))


def _at(step: ApiObject) -> str:
    from surehook.cli.human_times import local

    return local(step["at"])


def _jitter(step: ApiObject) -> str:
    low, high = step["jitter_s"]
    if low == high == 0:
        return "–"
    if low == -high:
        return f"±{seconds(high)}"
    return (
        f"{'-' if low < 0 else '+'}{seconds(abs(low))} … +{seconds(high)}" if low else f"+0 … {seconds(high)}"
    )


def seconds(value: float) -> str:
    """A duration of seconds for people."""
    from surehook.core.instants import say

    return say(value * 1000)
