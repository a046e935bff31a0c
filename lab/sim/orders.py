"""Acts of people in a world, and blows that strike its machines, as its plan names them."""

from __future__ import annotations

from msgspec import Struct


class Order(Struct, frozen=True):
    """Something people do at an instant: to an endpoint, to a delivery, or to all that a customer's tenant has."""

    at: float
    what: str
    which: int


class Blow(Struct, frozen=True):
    """A fault that strikes one node at an instant: kill, power, stop, freeze, step, or a death planned ahead."""

    at: float
    what: str
    which: int = 0
    steps: int = 0  # kill: this many callbacks after the instant
    seconds: float = 0.0  # how long it is away, frozen, or by how much its clock is set
    call: str = ""  # ledger_death: the call before or after which it dies; `closing` is a record of a breaker that closed
