"""What the tests share: the command line program, and where its files are."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


class Command:
    """The program `headtime`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, *args: object, status: int = 0) -> str:
        """Runs it, and returns what it prints."""
        run = subprocess.run([self.path, *map(str, args)], capture_output=True, text=True, check=False)
        assert run.returncode == status, run.stderr
        return run.stdout if status == 0 else run.stderr

    def json(self, *args: object) -> Any:
        """The same, as JSON."""
        return json.loads(self(*args, "--json"))


@pytest.fixture(scope="session")
def command() -> Command:
    """The program that `make python` built."""
    path = Path(os.environ.get("HEADTIME", ROOT / "target/debug/headtime"))
    if not path.exists():
        pytest.fail(f"{path}: expected the program; `make python` builds it, or HEADTIME is its path")
    return Command(path)
