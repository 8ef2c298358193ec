cmake_minimum_required(VERSION 3.20)
# Run at build time: writes ${HEADER} with the hash of the checked-out commit, only when it changed. A tree without git says so.
execute_process(COMMAND git describe --always --dirty --exclude=* WORKING_DIRECTORY ${SOURCE_DIR}
  OUTPUT_VARIABLE hash OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR hash STREQUAL "")
  set(hash "no git")
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#pragma once\nnamespace tutti::cli {\ninline constexpr const char* kGitHash = \"${hash}\";\n}\n" @ONLY)
