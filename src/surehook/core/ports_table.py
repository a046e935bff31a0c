"""The TCP ports that a webhook may call.

443, 80, and everything from 1024 on except ports on which something else listens that could be hurt or
read by an HTTP request: the bad ports of the Fetch standard (section 2.9), data stores, brokers, Docker
and cluster control ports. An operator's grant opens every port from 1024 on at the granted address.
"""

from __future__ import annotations

LOWEST_FREE_PORT = 1_024
WEB_PORTS = frozenset({80, 443})

# The Fetch standard's list from 1024 on (below that only 80 and 443 are open anyway).
_FETCH = {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679,
          6697, 10080}  # fmt: skip
_DATA_STORES = {1433, 1434, 1521, 3306, 3389, 5432, 5433, 5984, 6379, 6380, 6432, 7199, 7473, 7474, 7687,
                8086, 8529, 8983, 9042, 9160, 9200, 9300, 11211, 11214, 11215, 16379, 26257, 26379, 27017, 27018, 27019,
                28015, 28017}  # fmt: skip
_BROKERS = {1883, 4222, 4369, 5671, 5672, 6222, 8883, 9092, 9093, 15672, 25672, 61613, 61616}
_CONTROL = {2181, 2375, 2376, 2377, 2379, 2380, 4243, 5900, 5985, 5986, 6443, 8300, 8301, 8500, 10250, 10255,
            10256}  # fmt: skip
CLOSED_PORTS = frozenset(_FETCH | _DATA_STORES | _BROKERS | _CONTROL)


def is_open_port(port: int, *, granted: bool) -> bool:
    """True if a webhook may call `port`; `granted` where the operator named the address."""
    if port in WEB_PORTS:
        return True
    return port >= LOWEST_FREE_PORT and (granted or port not in CLOSED_PORTS)
