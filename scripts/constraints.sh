#!/usr/bin/env bash
# Renews constraints.txt: the newest version of everything, tried out by you before you commit it.
set -euo pipefail

python="${1:-python3}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet '.[all,dev]'
{
    echo "# The versions that Fila is built and tested with. \`make constraints\` renews them."
    "$folder/venv/bin/pip" freeze --exclude fila-mq | sort -f
} >constraints.txt
