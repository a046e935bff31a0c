"""Texts that people and programs give with a command: an empty or forgotten one is refused by its parameter's name."""

from __future__ import annotations

import re

from surehook.core.errors import SettingsError

LATER = "who asks later wants to know it"
CODE_CHARS = 64
_CODE = re.compile(rf"[a-z0-9_]{{1,{CODE_CHARS}}}")


def checked_text(name: str, value: object, hint: str | None = None) -> str:
    """Check a text that has to say something. Raises SettingsError."""
    if not isinstance(value, str) or not value.strip():
        raise SettingsError(name, f"a text that is not empty, and not {value!r:.40}", hint=hint)
    return value


def checked_code(code: object) -> str:
    """Check the code of a refusal. Raises SettingsError."""
    word = checked_text("code", code, 'a word for machines, such as "wrong_amount"')
    if not _CODE.fullmatch(word):
        raise SettingsError(
            "code",
            f"{word!r:.80} is no word for machines",
            hint=f'a to z, 0 to 9 and _, at most {CODE_CHARS} of them, such as "wrong_amount"; a sentence comes after it',
        )
    return word


def checked_maybe_empty(name: str, value: object, hint: str | None = None) -> str:
    """Check a text that may be empty, and is no None. Raises SettingsError."""
    if not isinstance(value, str):
        raise SettingsError(name, f"a text, and not {value!r:.40}", hint=hint)
    return value


def checked_document(document: object, tenant: object) -> None:
    """Check the id of a document and its tenant. Raises SettingsError."""
    checked_text("document", document, "the id that events of the document carry")
    checked_maybe_empty("tenant", tenant, 'tenant="": none')
