"""The policies that customers of a world may have."""

from __future__ import annotations

from typing import Any

# Policies with the shapes of the real ones and waits that end within a world's life.
SHORT = {"timeouts": {"first": 1, "retry": 4, "connect": 2}}
POLICIES: tuple[Any, ...] = (
    None,
    "standard",
    "signing",
    "yousign",
    "insigner",
    "webhooks_uno",
    {"profile": "standard", **SHORT, "schedule": {"fixed": [1, 3, 9, 20, 40]}},
    {"profile": "standard", **SHORT, "schedule": {"fixed": [2, 4]}, "jitter": None, "breaker": None},
    {"profile": "standard", **SHORT, "schedule": {"fixed": [1, 2, 4, 8, 16, 32]}, "max_age": 30},
    {
        "profile": "standard", **SHORT, "schedule": {"fixed": [1, 5, 10, 20]},
        "breaker": {"window": 30, "failure_ratio": 0.4, "calls": 4, "probe_after": 10},
    },
    {
        "profile": "signing", "schedule": {"exponential": {"base": 1, "factor": 2, "cap": 20, "retries": 8}},
        "breaker": {"window": 60, "failure_ratio": 0.5, "calls": 3, "probe_after": 5}, "escalate_after": 5,
    },
    {
        "profile": "yousign", "schedule": {"fixed": [2, 6, 30]},
        "breaker": {"window": 60, "failure_ratio": 0.4, "calls": 5, "probe_after": 15},
    },
    {"profile": "yousign", "auto_retry": False},
    {
        "profile": "insigner", "schedule": {"fixed": [1, 2, 5, 10]},
        "timeouts": {"first": 3, "retry": 3, "connect": 3}, "auto_disable": {"consecutive_failures": 6},
    },
    {"profile": "webhooks_uno", "schedule": {"wait_factor": {"factor": 50, "retries": 1}}, "jitter": None},
    {"profile": "webhooks_uno", "schedule": {"wait_factor": {"retries": 0}}},
    {"profile": "standard", **SHORT, "schedule": {"fixed": [1, 2]}, "on_exhausted": "enter_failure"},
    {"profile": "standard", **SHORT, "schedule": {"fixed": [1]}, "on_exhausted": "drop", "jitter": None},
)  # fmt: skip
