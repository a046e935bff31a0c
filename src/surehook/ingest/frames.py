"""Makes the AMQP library read messages that would end its connection.

A publisher may put anything into the fields beside a body: a message id in Latin-1, a timestamp in nanoseconds.
RabbitMQ hands it on. The library (pamqp) cannot read it and ends the connection; the message comes
again on the next one, with the same result, and all messages behind it wait for ever. So, in the process of
`surehook ingest`, two of its readers are replaced:

- Short text that is not UTF-8 keeps its other bytes as `\\xNN`, so two ids stay two.
- Properties that cannot be read are left empty, and the header `UNREAD` says why. `reading.py` puts such a message aside.

There is no setting for it, and a reader of our own would be a second AMQP library.
"""

from __future__ import annotations

from typing import Any

from pamqp import decode, header
from pamqp.commands import Basic

UNREAD = "surehook-unread"
_strict_header: Any = header.ContentHeader.unmarshal


def widen() -> None:
    """Replace the two readers in this process. May be called again."""
    decode.METHODS["shortstr"] = _text
    header.ContentHeader.unmarshal = _header  # type: ignore[method-assign]


def _text(value: bytes) -> tuple[int, str]:
    end = 1 + value[0]
    return end, value[1:end].decode("utf-8", "backslashreplace")


def _header(self: header.ContentHeader, data: bytes) -> None:
    try:
        _strict_header(self, data)
    except Exception as error:  # it promises none in particular: ValueError, OverflowError, struct.error, …
        if self.class_id is None:  # not even the size of the body
            raise
        self.properties = Basic.Properties(headers={UNREAD: f"{type(error).__name__}: {error}"})
