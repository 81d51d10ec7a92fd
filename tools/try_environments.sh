#!/bin/sh
# Makes environments of several Pythons and versions of the packages, and runs the quick tests in each.
#
#   tools/try_environments.sh                all of them: the lowest versions, then every Python of pyproject.toml
#   tools/try_environments.sh lowest 3.10    these
#
# `lowest` has the lowest versions that pyproject.toml allows, on the oldest Python; the others have the newest ones.
# An interpreter is looked for on PATH, then with uv and pyenv, then among the packages of Debian or Ubuntu (APT=no: not
# there). Where none is found the environment is skipped, unless it was named.
#
# TESTS          what runs in each, arguments of pytest
# ENVIRONMENTS   folder in which the environments are made, 1.5 GB each; without it, a temporary one that is removed
set -eu
cd "$(dirname "$0")/.."

# Of warnings that the configuration makes errors, those of old packages about their own future are none here.
# tests/test_tiers.py compares what the targets of the Makefile run, which includes the tests with servers.
TESTS=${TESTS:-"-m 'not spark and not slow' --ignore=tests/servers --ignore=tests/live --ignore=tests/test_tiers.py"}
quick_tests="-m pytest -q -p no:cacheprovider -W default::DeprecationWarning $TESTS"

pythons=$(sed -n 's/.*"Programming Language :: Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml)
oldest=$(printf '%s\n' "$pythons" | head -n 1)
named=yes
[ $# -gt 0 ] || { named=no && set -- lowest $pythons; }

if [ -z "${ENVIRONMENTS:-}" ]; then
    ENVIRONMENTS=$(mktemp -d)
    trap 'rm -rf "$ENVIRONMENTS"' EXIT
    trap 'exit 130' INT TERM
fi
mkdir -p "$ENVIRONMENTS"

# uv finds lowest versions, which pip cannot, and needs no pip in what it makes.
if command -v uv >/dev/null; then
    uv=uv
else
    [ -x "$ENVIRONMENTS/uv/bin/uv" ] || {
        python3 -m venv "$ENVIRONMENTS/uv"
        "$ENVIRONMENTS/uv/bin/python" -m pip --quiet --disable-pip-version-check install uv
    }
    uv=$ENVIRONMENTS/uv/bin/uv
fi
export UV_PYTHON_DOWNLOADS="${UV_PYTHON_DOWNLOADS:-never}"

# Prints the path of an interpreter of version $1.
find_python() {
    is_version="import sys; assert '%d.%d' % sys.version_info[:2] == '$1'; print(sys.executable)"
    "python$1" -c "$is_version" 2>/dev/null && return
    "$uv" python find --quiet "$1" 2>/dev/null && return
    if command -v pyenv >/dev/null; then
        found=$(pyenv versions --bare 2>/dev/null | grep -x "$1\.[0-9]*" | tail -n 1)
        [ -z "$found" ] || { "$(pyenv prefix "$found")/bin/python" -c "$is_version" && return; }
    fi
    tools/apt_install.sh "python$1" >&2 && "python$1" -c "$is_version" 2>/dev/null
}

# Makes the environment $1 with the interpreter $2.
make_environment() {
    "$uv" venv --quiet --clear --python "$2" "$ENVIRONMENTS/$1"
    resolution=highest
    [ "$1" != lowest ] || resolution=lowest-direct
    "$uv" pip install --quiet --python "$ENVIRONMENTS/$1/bin/python" --resolution "$resolution" --editable '.[dev]'
}

failed=
for name; do
    version=$name
    [ "$name" != lowest ] || version=$oldest
    if ! python=$(find_python "$version"); then
        echo "== $name: no Python $version was found" >&2
        [ "$named" = no ] || failed="$failed $name"
        continue
    fi
    started=$(date +%s)
    echo "== $name: $python"
    export PYSPARK_PYTHON="$ENVIRONMENTS/$name/bin/python" PYSPARK_DRIVER_PYTHON="$ENVIRONMENTS/$name/bin/python"
    if make_environment "$name" "$python" && eval "\"\$PYSPARK_PYTHON\" $quick_tests"; then
        echo "== $name: passed, $(($(date +%s) - started)) s"
    else
        echo "== $name: failed" >&2
        failed="$failed $name"
    fi
done
[ -z "$failed" ] || { echo "Failed:$failed" >&2 && exit 1; }
