"""The notebooks run from their first cell to the last; what they assert holds."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel of its own."""
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("MPLBACKEND", "agg")
    NotebookClient(nbformat.read(path, as_version=4), timeout=300, kernel_name="python3").execute()


def test_they_are_stored_without_outputs_and_wide_lines() -> None:
    """So that a change of theirs can be read."""
    import nbformat

    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            assert not cell.get("outputs"), path
            wide = [line for line in cell.source.splitlines() if len(line) > 120]
            assert not wide, f"{path}: expected at most 120 columns"
