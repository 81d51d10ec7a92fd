#!/bin/sh
# Writes constraints.txt anew: the newest versions that fit pyproject.toml, for every Python from 3.10 on.
#
# uv does the search, because pip can only do it for the Python that it runs on.
set -eu
cd "$(dirname "$0")/.."

.venv/bin/python -m pip install --quiet --disable-pip-version-check uv
mkdir -p build
{
    echo '# The versions that `make setup` installs, for every Python from 3.10 on. `make pin` writes this file.'
    .venv/bin/python -m uv pip compile --quiet --universal --python-version 3.10 --all-extras \
        --no-header --no-annotate pyproject.toml
} >build/constraints.txt
mv build/constraints.txt constraints.txt
