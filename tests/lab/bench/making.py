"""Logs written by hand, for the pure parts of the benches."""

from array import array

from lab.bench.records import Arrivals, Sent


def sent(*rows, deliveries=None):
    """Rows of (event id, meant ns, accepted ns)."""
    return Sent(
        ids=b"\n".join(row[0] for row in rows),
        sent=array("q", [row[1] for row in rows]).tobytes(),
        accepted=array("q", [row[2] for row in rows]).tobytes(),
        deliveries=len(rows) if deliveries is None else deliveries,
        attempted=len(rows),
        refused=0,
        unanswered=0,
        statuses={"202": len(rows)},
        started_ns=0,
        ended_ns=max((row[2] for row in rows), default=0),
        lag_ms=0.0,
        cpu_us=0.0,
    )


def arrivals(*rows, paths=("/ok",), unanswered=()):
    """Rows of (delivery id, event id, ns) or (delivery id, event id, ns, path number)."""
    seen = [row[0] for row in rows]
    return Arrivals(
        paths=list(paths),
        deliveries=b"\n".join(seen),
        events=b"\n".join(row[1] for row in rows),
        at=array("q", [row[2] for row in rows]).tobytes(),
        path=array("H", [row[3] if len(row) > 3 else 0 for row in rows]).tobytes(),
        answered=len(set(seen)) - len(unanswered),
        unanswered=b"\n".join(unanswered),
        duplicated=len(seen) - len(set(seen)),
        cpu_us=0.0,
    )
