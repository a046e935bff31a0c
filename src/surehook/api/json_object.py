"""The type of a JSON object whose members are not known here: schemas, examples, stored JSON."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
