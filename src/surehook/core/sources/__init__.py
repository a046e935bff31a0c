"""The signatures of other systems as data, and the one interpreter that judges messages by it.

A **provider** is a record: the place of the signature, the bytes it covers and its algorithm, the places of id, type and
time, the format of the body, and the answers that the provider expects. No provider has code of its own.

A scheme covers its signed content and nothing else. A message's facts about itself (`id`, `type`, `occurred_at`) may be in
the body or in a header, and are proven only if that place is covered. So `proven` is not
written down anywhere: it is computed from the same record by which the signature is checked (`proof.py`), and cannot
disagree with it.

    provider.py   the record, and the checks of its definition
    request.py    one received request, and reading a place in it
    payload.py    bodies of strangers: JSON within bounds, forms, one part of a multipart body
    keys.py       secrets and public keys, prepared for comparing
    proof.py      the parts (body, time, id, type) that a signature covers
    judge.py      request + keys + now → message, or one kind of error
    message.py    a verified message
    greeting.py   handshakes, which some providers ask for before they send, and with some events
    callers.py    the address of the caller behind trusted proxies
    catalog*.py   the providers
"""
