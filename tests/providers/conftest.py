from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest


@pytest.fixture
def forked() -> Callable[[Callable[[], None]], None]:
    """Runs a function in a forked child; it must end well and in time."""

    def run(body: Callable[[], None]) -> None:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(20)
                body()
                code = 0
            except BaseException as error:
                os.write(2, f"{type(error).__name__}: {error}\n".encode())
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0

    return run
