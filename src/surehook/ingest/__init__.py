"""Events out of a broker's queue into a server: `surehook ingest`.

    reading.py  what a message says: our own JSON, or a CloudEvent; pure
    intake.py   many messages into few requests; what is sure is acknowledged, what is refused put aside
    rabbit.py   the queue: taking, acknowledging, the dead-letter queue

It is a client of the HTTP API, not a node of the ledger. So any number may run anywhere, beside SQLite as well,
and every rule about events (schemas, tenants, bounds, who may publish) is kept in one place. The price is one
request for some hundred messages.
"""
