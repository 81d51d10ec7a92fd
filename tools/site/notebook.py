"""`python -m tools.site.notebook` executes examples/tour.ipynb and writes it again, with its outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .pages import ROOT

PATH = ROOT / "examples" / "tour.ipynb"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
SECONDS = 300
"""The most that a cell may take; the first one compiles."""


def executed(path: Path = PATH) -> Any:
    """Returns a notebook as it is after a run in its folder, without what differs from run to run."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=SECONDS,
        startup_timeout=SECONDS,
        kernel_name=KERNEL["name"],
        record_timing=False,
        coalesce_streams=True,  # what a cell prints comes in one piece or in several, as the kernel has time
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        if "outputs" in cell:  # Spark's log has times and addresses
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def results(notebook: Any) -> list[list[str]]:
    """Returns what each cell showed, as text; of a picture only that it is one."""
    return [
        [
            "a picture" if "image/svg+xml" in data else "".join(output.get("text", data.get("text/plain", "")))
            for output in cell.get("outputs", [])
            for data in [output.get("data", {})]
        ]
        for cell in notebook.cells
    ]


if __name__ == "__main__":
    import nbformat

    nbformat.write(executed(), PATH)
