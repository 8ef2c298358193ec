#!/usr/bin/env bash
# named_tests.sh SOURCES: the GoogleTest cases, and the suites named ...Test, that docs/findings.md names as evidence are in the tree.
# Renaming a test is easily forgotten there. And no test's name holds a parameter's value, whose addresses differ from build to build.
set -euo pipefail
cd "$1"
cases=$(grep -rhoE 'TEST(_F|_P)?\(\w+, *\w+' --include='*_test.cpp' tutti tests | sed -E 's/.*\((\w+), *(\w+)/\1.\2/')
named=$({
  grep -oE '\b[A-Z]\w+\.([A-Z]\w+|\*)' docs/findings.md
  grep -oE '\b[A-Z]\w+Test\b' docs/findings.md | sed -E '/^(GoogleTest|CTest)$/d; s/$/.*/'
} | sort -u)
[[ $(wc -l <<<"$named") -gt 100 ]] || { echo "docs/findings.md names hardly any test: is this still how they are written?"; exit 1; }
missing=0
if grep -rn 'gtest_discover_tests(' cmake tests | grep -E '\.cmake:|CMakeLists\.txt:' | grep -v NO_PRETTY_VALUES; then
  echo "gtest_discover_tests without NO_PRETTY_VALUES"
  missing=1
fi
while read -r name; do
  if ! grep -qE "^${name//\*/.*}$" <<<"$cases"; then
    echo "docs/findings.md: there is no test $name"
    missing=1
  fi
done <<<"$named"
exit "$missing"
