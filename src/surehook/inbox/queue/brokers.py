"""The one place that names the adapters: a broker by the scheme of its URL."""

from __future__ import annotations

from surehook.core.errors import SettingsError
from surehook.inbox.queue.option import Queue
from surehook.inbox.queue.port import Broker

EXAMPLES = "amqp://user@host/vhost or redis://host/0"
_EXTRAS = {"amqp": "rabbitmq", "amqps": "rabbitmq", "redis": "redis", "rediss": "redis"}


def broker(queue: Queue) -> Broker:
    """Make the broker of a URL. Raises SettingsError for one that cannot be used, and where its client is not installed."""
    scheme = queue.url.partition("://")[0] if isinstance(queue.url, str) else ""
    extra = _EXTRAS.get(scheme)
    if extra is None:
        # Not shown: it may hold a password.
        raise SettingsError(
            "queue", "this is no address of a broker that can be used", hint=f"such as {EXAMPLES}"
        )
    try:
        return _rabbit(queue) if extra == "rabbitmq" else _redis(queue)
    except ModuleNotFoundError as error:
        raise SettingsError(
            "queue",
            f"{scheme}:// needs the package {error.name}, which is missing",
            hint=f"pip install 'surehook[inbox,{extra}]'",
        ) from error
    except ValueError:
        raise SettingsError("queue", f"this is no {scheme}:// address", hint=f"such as {EXAMPLES}") from None


def _rabbit(queue: Queue) -> Broker:
    from surehook.inbox.queue.rabbitmq import RabbitQueue

    return RabbitQueue(queue.url, queue.name, queue.most_bytes)


def _redis(queue: Queue) -> Broker:
    from surehook.inbox.queue.redis import RedisQueue

    return RedisQueue(queue.url, queue.name, queue.most_bytes)
