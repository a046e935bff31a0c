"""Events out of a broker's queue into a server: `surehook ingest`.

    reading.py  reads a message: our own JSON, or a CloudEvent; pure
    intake.py   many messages into few requests; stored ones are acknowledged, refused ones put aside
    rabbit.py   the queue: taking, acknowledging, the dead-letter queue
    frames.py   patches its library for messages that would end the connection
    acks.py     many acknowledgements in one frame
    aside.py    what a dead letter keeps, and the reason
    run.py      runs it until told to stop, across lost connections

It is a client of the HTTP API, not a node of the ledger. So any number may run anywhere, beside SQLite as well,
and every rule about events (schemas, tenants, bounds, who may publish) is kept in one place. The price is one
request for some hundred messages.
"""
