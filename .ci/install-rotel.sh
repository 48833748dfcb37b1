#!/bin/sh
# Installs the OpenTelemetry collector `rotel` into .ci/venv, for the test that sends a trace to a program of others.
#
# Prints the path of the collector. The test finds it by itself; another one is given by ROTEL_AGENT=PATH.
set -eu
cd "$(dirname "$0")/.."
venv=.ci/venv
# Pinned: the test reads the collector's log.
version=0.0.1a15

if ! "$venv/bin/python" -c "import importlib.metadata as m; assert m.version('rotel') == '$version'" 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "rotel==$version" >&2
fi
"$venv/bin/python" -c 'import os, rotel; print(os.path.join(os.path.dirname(rotel.__file__), "rotel-agent"))'
