#!/usr/bin/env bash
# What ./x demo runs after the build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Where the run lies, if an override says so.
directory=runs name=demo
for argument in "$@"; do
  case $argument in
    base_output_directory=*) directory=${argument#*=} ;;
    run_name=*) name=${argument#*=} ;;
  esac
done
build/bin/xylem train configs/demo.yaml "$@"
echo
build/bin/xylem generate --run "$directory/$name" --prompt "In the beginning" --max-tokens 400 --temperature 0.8
