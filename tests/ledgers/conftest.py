"""Every test takes a `desk` (or a bare `ledger`) and runs once for each adapter.

Tests are coroutines; `runner` is the loop that the ledger was opened on, so that a writer thread finds
its way home and a connection stays on its own. No plug-in is needed for that.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .adapters import ADAPTERS, Adapter
from .desk import Desk
from .making import NOW, Maker


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test on its runner, whatever loop a plug-in has wrapped it for."""
    test = inspect.unwrap(pyfuncitem.obj)
    if not inspect.iscoroutinefunction(test) or "runner" not in pyfuncitem.funcargs:
        return None
    wanted = pyfuncitem._fixtureinfo.argnames
    runner: asyncio.Runner = pyfuncitem.funcargs["runner"]
    runner.run(test(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=[adapter.param for adapter in ADAPTERS])
def adapter(request: pytest.FixtureRequest) -> Adapter:
    return request.param


@pytest.fixture
def ledger(adapter: Adapter, runner: asyncio.Runner, tmp_path: Path) -> Iterator[Any]:
    with adapter.ground(tmp_path):
        ledger = adapter.make(tmp_path)
        runner.run(ledger.open(now=NOW))
        yield ledger
        runner.run(ledger.close())


@pytest.fixture
def desk(ledger: Any, runner: asyncio.Runner) -> Desk:
    return runner.run(Desk(ledger, Maker()).begin())
