#!/usr/bin/env bash
# bench.sh BUILD_DIR [--list | NAME]: runs the benchmarks whose name contains NAME; called by ./x bench.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build_dir=$1
name=${2:-}
list=
if [[ $name == --list ]]; then list=1 name=; fi
ran=0 failed=0
shopt -s nullglob
for file in benchmarks/*.sh benchmarks/*.py "$build_dir"/benchmarks/*; do
  base=$(basename "$file")
  [[ -f $file && $base == *"$name"* && $base != _* ]] || continue
  ran=$((ran + 1))
  if [[ -n $list ]]; then echo "$base"; continue; fi
  echo "== $base"
  case $file in
    *.sh) XYLEM_BUILD_DIR=$build_dir bash "$file" || failed=$((failed + 1)) ;;
    *.py) XYLEM_BUILD_DIR=$build_dir build/venv/bin/python "$file" || failed=$((failed + 1)) ;;
    *) [[ -x $file ]] && { "$file" || failed=$((failed + 1)); } ;;
  esac
done
[[ $ran -gt 0 ]] || { echo "bench: no benchmark matches '$name'" >&2; exit 2; }
[[ $failed == 0 ]] || { echo "bench: $failed failed" >&2; exit 1; }
