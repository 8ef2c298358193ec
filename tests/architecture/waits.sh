#!/usr/bin/env bash
# waits.sh ROOT: no test is decided by a limit that was written down in seconds, whatever else the machine does. tests/README.md says what
# stands in its place. Each rule is held against a line that breaks it, too.
set -euo pipefail
cd "$1"
status=0
few='([0-9]|[1-9][0-9]|[12][0-9][0-9])(\.[0-9]+)?' # seconds, fewer than only a hang takes
follows='patien|kHang|second\)|until\)|LABELS long'

# rule PATTERN EXAMPLE FILE...: no line of the files matches, unless it follows the machine's delay
rule() {
  local pattern=$1 example=$2 found
  shift 2
  grep -Eq -- "$pattern" <<<"$example" || {
    echo "waits.sh: '$pattern' does not find: $example"
    status=1
  }
  found=$(grep -nEH -- "$pattern" "$@" | grep -Ev "$follows" || true)
  [ -z "$found" ] || {
    echo "$found"
    status=1
  }
}
mapfile -t scripts < <(find tests -name '*.sh' -not -path '*/architecture/*')
mapfile -t programs < <(find tests tutti \( -path 'tests/*.c' -o -path 'tests/*.h' -o -path 'tests/*.cpp' -o -name '*_test.cpp' \) -not -path '*/fuzz/*')
mapfile -t builds < <(find tests cmake -name '*.txt' -o -name '*.cmake')
[ ${#scripts[@]} -gt 20 ] && [ ${#programs[@]} -gt 200 ] && [ ${#builds[@]} -gt 10 ]

rule "(^|[ ;(])timeout (-[^ ]+ )*$few[smh]?( |\$)" '  timeout -k 1 20 mpirun' "${scripts[@]}"
rule "timeout_s=\"?$few([^0-9]|\$)" '--set comm.timeout_s=5 >run.log' "${scripts[@]}"
rule "sleep (0\\.[5-9]|[1-9][0-9]?( |\$))" '  sleep 2' "${scripts[@]}"
rule "timeout(_s)?(\\(| = )([^;]* [?:] )?$few([^0-9.]|\$)" 'c.set_timeout(0.2);' "${programs[@]}"
rule "now\\(\\) \\+ (std::chrono::)?(seconds\\($few\\)|$few""s)" 'until = Clock::now() + 20s;' "${programs[@]}"
rule "now\\(\\) - [a-z_]+ < (std::chrono::seconds|[0-9]+s)" 'while (now() - begin < 20s)' "${programs[@]}"
rule "(EXPECT|ASSERT)_L[TE]\\(.*(now\\(\\)|wait_seconds)" 'EXPECT_LT(Clock::now() - begin, seconds(10));' "${programs[@]}"
rule "difftime\\(.*\\) < *[0-9k]" 'EXPECT(difftime(time(NULL), begin) < 15);' "${programs[@]}"
rule "TIMEOUT $few( |\\)|\$)" 'set_tests_properties(a PROPERTIES TIMEOUT 60)' "${builds[@]}"
[ $status -eq 0 ] || echo "a limit in seconds decides a test on a busy machine: see tests/README.md, \"Time limits\""
exit $status
