"""The outbox in Django: its tables by `migrate`, and a command that publishes.

    # settings.py
    INSTALLED_APPS = [..., "surehook.outbox.django"]
    SUREHOOK_OUTBOX = {"url": "http://hooks.internal:8080", "key": KEY}

    # anywhere
    with transaction.atomic():
        contract.save()
        outbox.put(connection, "contract.signed", {"id": contract.pk}, subject=str(contract.pk))

`manage.py surehook_outbox run` publishes what was committed (docs/publishing.md).
"""
