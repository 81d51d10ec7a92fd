#!/bin/sh
# Makes .venv and installs this package into it: editable, with all extras, at the versions of constraints.txt.
#
# Does nothing, and needs no network, where the last run did the same: .venv/setup.done holds what it was made from.
# PYTHON names the interpreter to make .venv with; without it, the first one on PATH that is new enough is taken.
# A .venv that is there keeps its interpreter.
set -eu
cd "$(dirname "$0")/.."

fingerprint() {
    { pwd && cat pyproject.toml constraints.txt tools/setup.sh; } | cksum
}

say_and_stop() {
    printf '%s\n' "$@" >&2
    exit 1
}

find_python() {
    for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10 python}; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    say_and_stop "No Python 3.10 or newer was found (looked for: ${PYTHON:-python3, python3.10 to python3.14, python})." \
        "Install one, or name it: make setup PYTHON=/path/to/python3"
}

# Debian and Ubuntu keep the part of Python that puts pip into a new .venv in a package of its own.
make_sure_of_ensurepip() {
    "$1" -c 'import ensurepip' 2>/dev/null && return
    package="$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    tools/apt_install.sh "$package" && "$1" -c 'import ensurepip' 2>/dev/null && return
    say_and_stop "$1 cannot make a virtual environment: its module ensurepip is missing." \
        "On Debian and Ubuntu: apt-get install $package"
}

if [ "$(cat .venv/setup.done 2>/dev/null)" = "$(fingerprint)" ] && .venv/bin/python -c '' 2>/dev/null; then
    exit 0
fi

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    make_sure_of_ensurepip "$python"
    "$python" -m venv --clear .venv
fi
rm -f .venv/setup.done
echo "Installing the packages of constraints.txt into .venv; the first time this takes a few minutes." >&2
pip() { .venv/bin/python -m pip --quiet --disable-pip-version-check "$@"; }
pip install 'pip>=22' # older ones cannot install this package editable
pip install --use-pep517 --constraint constraints.txt --editable '.[cli,spark,bench,dev]'
fingerprint >.venv/setup.done
