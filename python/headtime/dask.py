"""Dask as an executor: `headtime.sweep(grid, output, executor=headtime.dask.executor(client))`."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

from headtime._headtime import HeadtimeError


def executor(client: Any = None, **cluster: Any) -> Executor:
    """Returns the executor of a `distributed.Client`; without one, of a new client of a local cluster.

    `cluster` are arguments of a new `distributed.Client`. Calls are not assumed to be the same if their arguments are:
    a chunk that is given out twice is run twice.
    """
    try:
        from distributed import Client
    except ImportError as e:
        raise HeadtimeError("Dask is not installed; `pip install 'headtime[dask]'` does") from e
    client = Client(**cluster) if client is None else client
    made: Executor = client.get_executor(pure=False)
    return made
