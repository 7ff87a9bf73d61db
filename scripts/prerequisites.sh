#!/usr/bin/env bash
# Makes sure that Python can build a virtual environment: the only thing needed from the system.
set -euo pipefail

python="${1:-python3}"

if ! command -v "$python" >/dev/null; then
    echo "fila: $python is not installed; on Debian or Ubuntu: apt-get install python3 python3-venv" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "fila: $("$python" --version) is too old; Fila needs 3.11 or newer (make PYTHON=python3.12 …)" >&2
    exit 1
fi
if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    exit 0
fi

# Debian splits the module off, under the interpreter's own name.
package="$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "fila: installing $package"
    apt-get update -qq && apt-get install -y -qq "$package"
else
    echo "fila: Python's venv module is missing; on Debian or Ubuntu: sudo apt-get install $package" >&2
    exit 1
fi
