#!/usr/bin/env bash
# test_names.sh SOURCES: no test's name holds a parameter's value, whose bytes and addresses differ from build to build. GoogleTest's tests are
# named by gtest_discover_tests, which leaves values out with NO_PRETTY_VALUES alone.
set -euo pipefail
cd "$1"
if grep -rn 'gtest_discover_tests(' cmake tests | grep -E '\.cmake:|CMakeLists\.txt:' | grep -v NO_PRETTY_VALUES; then
  echo "gtest_discover_tests without NO_PRETTY_VALUES"
  exit 1
fi
