#!/usr/bin/env bash
# readers.sh SOURCES: every source of tutti/ that opens a file or parses JSON or TOML is in readers.txt, with the targets that fuzz it or the
# reason why none does; and those targets have a corpus. So a new reader is not forgotten here.
set -euo pipefail
cd "$1"
list=tests/fuzz/readers.txt
opens='FileBytes::open|InputFile|SafetensorsFile [a-z]+\(|SafetensorsFile&|std::ifstream|fopen\(|parse_(json|members|numbers)\(|toml::parse|read_text\('
missing=0
say() { echo "$*" && missing=1; }
while read -r source; do
  grep -qE "^${source//./\\.} (-|[a-z0-9_]+)( |$)" "$list" || say "tutti/$source reads a file: $list says neither which target fuzzes it nor why none does"
done < <(grep -rlE "$opens" tutti --include='*.cpp' --exclude='*_test.cpp' | sed 's,^tutti/,,' | sort)
while read -r source targets; do
  grep -qsE "$opens" "tutti/$source" || say "$list: tutti/$source is not there, or reads no file any more"
  [[ $targets == -* ]] && continue
  for target in $targets; do
    [[ -d tests/fuzz/corpus/$target ]] || say "$list: there is no target $target"
  done
done < <(sed '/^#/d' "$list")
exit "$missing"
