# Verbs that print facts speak with one voice under a launcher.
function(one_voice name once)
  add_test(NAME multirank.one_voice.${name} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 2 $<TARGET_FILE:tutti> ${ARGN})
  set_tests_properties(multirank.one_voice.${name} PROPERTIES ENVIRONMENT "${environment}" PROCESSORS 2
    PASS_REGULAR_EXPRESSION "${once}" FAIL_REGULAR_EXPRESSION "${once}.*${once}")
endfunction()
one_voice(doctor "exchange +2 ranks on 1 node.s. through shared memory" doctor --no-measure)
one_voice(doctor_json "\"transport\": \"shared memory\"" doctor --no-measure --json)
