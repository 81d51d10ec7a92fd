"""The notebook runs, and shows what it showed when it was written."""

from __future__ import annotations

import json
import re

import pytest

from tools.site.notebook import PATH, executed, results

NOTEBOOK = json.loads(PATH.read_text(encoding="utf-8"))


def test_outputs_are_without_paths_and_times() -> None:
    text = PATH.read_text(encoding="utf-8")
    assert re.findall(r"/(?:home|root|tmp|work|Users)\b|[A-Z]:\\\\", text) == []
    for cell in NOTEBOOK["cells"]:
        assert cell["metadata"] == {}
        assert cell["cell_type"] == "markdown" or cell["outputs"] or cell["execution_count"]
    assert set(NOTEBOOK["metadata"]) == {"kernelspec", "language_info"}


@pytest.mark.slow
@pytest.mark.spark
def test_it_shows_what_it_says() -> None:
    """Written again by `python -m tools.site.notebook`."""
    for module in ("nbclient", "ipykernel", "polars", "duckdb", "matplotlib", "pyspark"):
        pytest.importorskip(module, reason="needs the extras bench and docs; Python 3.10 has no docs")
    import nbformat

    assert results(executed()) == results(nbformat.read(PATH, as_version=4))
