"""Ray as an executor: `headtime.sweep(grid, output, executor=headtime.ray.RayExecutor())`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from headtime._headtime import HeadtimeError


class RayExecutor(Executor):
    """Runs calls as tasks of a Ray cluster.

    `ray.init(...)` is called with these arguments unless Ray runs already. Ray itself runs a task again whose worker
    dies.
    """

    def __init__(self, **init: Any) -> None:
        try:
            import ray
        except ImportError as e:
            raise HeadtimeError("Ray is not installed; `pip install 'headtime[ray]'` does") from e
        self._ray: Any = ray
        self._began = not ray.is_initialized()
        if self._began:
            ray.init(**{"log_to_driver": False, "include_dashboard": False, **init})
        self._call = ray.remote(max_retries=3)(_call)
        self.max_workers = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submits a call."""
        future: Future[Any] = self._call.remote(fn, args, kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends Ray, if this object began it."""
        if self._began:
            self._ray.shutdown()
            self._began = False


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)
