"""The signatures of other systems as data, and the one interpreter that judges messages by it.

A **provider** is a record: where the signature stands, which bytes it covers, under which algorithm, where id, type and
time are, how the body is written, what the provider wants to be told. No provider has code of its own.

A scheme covers what stands in its signed content and nothing else. What a message tells about itself (`id`, `type`,
`occurred_at`) may stand in the body or in a header, and is proven only if that place is covered. So `proven` is not
written down anywhere: it is computed from the same record by which the signature is checked (`proof.py`), and cannot
disagree with it.

    provider.py   the record, and what is refused when one is defined
    request.py    one received request, and how a place in it is read
    payload.py    bodies of strangers: JSON within bounds, forms, one part of a multipart body
    keys.py       secrets and public keys, made ready for comparing
    proof.py      which of body, time, id and type a signature covers
    judge.py      request + keys + now → message, or one kind of error
    message.py    what a believed message is
    greeting.py   handshakes: what a provider asks for before it sends, and with some events
    callers.py    who is calling, through proxies that are named
    catalog*.py   the providers
"""
