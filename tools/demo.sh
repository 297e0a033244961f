#!/usr/bin/env bash
# What ./x demo runs after the build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build/bin/xylem train configs/demo.yaml "$@"
echo
build/bin/xylem generate --run runs/demo --prompt "In the beginning" --max-tokens 400 --temperature 0.8
