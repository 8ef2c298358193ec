# The measuring program itself, on sizes that take no time: that it runs, checks and writes, not how fast it is.
function(bench_comm name regex)
  add_test(NAME multirank.bench_comm.${name} COMMAND ${tutti_whole_lines} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 2 -- $<TARGET_FILE:tutti> bench comm ${ARGN})
  set_tests_properties(multirank.bench_comm.${name} PROPERTIES ENVIRONMENT "${environment}" PROCESSORS 2 PASS_REGULAR_EXPRESSION "${regex}")
endfunction()
set(table ${CMAKE_CURRENT_BINARY_DIR}/selection.txt)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/selection_wrong.txt "allreduce 2 node * no ring\nallreduce 2 node ring\n")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/selection_ring.txt "allreduce 2 node * no ring\n")
bench_comm(tune "\nallreduce +2  node +[0-9*]+  [*] +[a-z_]+\n.*\nallgather +2  node" --tune=${table} -b 64 -e 4K -f 8 -n 3 -w 1)
bench_comm(tuned " 0 *\n" --selection ${table} -b 64 -e 4K -f 8 -n 3 -w 1 -c 2 --peers none)
bench_comm(selected "ring .* 0 *\n" --selection ${CMAKE_CURRENT_BINARY_DIR}/selection_ring.txt -b 64 -e 64 -n 3 -w 1 -c --peers none)
bench_comm(selection_wrong "selection_wrong.txt:2: expected: collective ranks topology" --selection ${CMAKE_CURRENT_BINARY_DIR}/selection_wrong.txt -b 64 -e 64)
# Without a file the table is printed alone.
bench_comm(tune_alone "\nallreduce +2  node" --collective allreduce -b 64 -e 64 -n 3 -w 1 --tune)
# What cannot be is the configuration's fault, and is said before anything is measured.
add_test(NAME multirank.bench_comm.refused COMMAND $<TARGET_FILE:tutti> bench comm --collective all -d byte)
set_tests_properties(multirank.bench_comm.refused PROPERTIES PASS_REGULAR_EXPRESSION "^tutti: --type byte: bytes can be moved, but not reduced, as reduce does\n$")
add_test(NAME multirank.bench_comm.refused_algorithm COMMAND $<TARGET_FILE:tutti> bench comm --ranks 2 --algorithm bruck)
set_tests_properties(multirank.bench_comm.refused_algorithm PROPERTIES PASS_REGULAR_EXPRESSION "^tutti: --algorithm: bruck does not do allreduce\n$")
bench_comm(latency "Latency \\(us\\)\n8 +[0-9.]+\n32 +[0-9.]+\n128 +[0-9.]+\n" --latency -b 8 -e 128 -n 5 -w 1)
bench_comm(osu "Max Latency.us.  Iterations\n64 +[0-9.]+ +[0-9.]+ +[0-9.]+ +3\n" --columns osu --collective allgather -b 64 -e 64 -n 3 -w 1)
# The one output of all ranks is written by each of them.
bench_comm(shared_output "Out of bounds values +: 0 OK" --shared-output -b 64K -e 64K -n 3 -w 1 -c --peers none)
# Every peer of this build: a wrong answer of one is an error.
bench_comm(peers " 0 +[0-9.]+ +[0-9.]+" --collective all -b 96 -e 6144 -f 64 -n 2 -w 1 -c 2)
set_tests_properties(multirank.bench_comm.peers multirank.bench_comm.tuned multirank.bench_comm.selected PROPERTIES FAIL_REGULAR_EXPRESSION "wrong element")
set_tests_properties(multirank.bench_comm.tune PROPERTIES FIXTURES_SETUP selection_table)
set_tests_properties(multirank.bench_comm.tuned PROPERTIES FIXTURES_REQUIRED selection_table)
