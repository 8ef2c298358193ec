# The standard headers and fmt are most of what a small file compiles, so they are compiled once: one precompiled header for the
# libraries, one with GoogleTest for the tests. Each source still includes what it uses; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
# builds without, and tests/architecture reads the includes themselves.
set(tutti_precompiled_headers
  <fmt/format.h> <fmt/ranges.h> <algorithm> <array> <atomic> <bit> <chrono> <cmath> <condition_variable> <cstddef> <cstdint> <cstring> <deque>
  <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <span> <sstream> <stdexcept> <string> <string_view>
  <thread> <utility> <variant> <vector>)

# What no step of a training waits for (TuttiFolder.cmake). -Og takes an eighth less of the compiler's time than -O1. GCC then sees less of what
# a constructor sets, and warns of destructors that read it.
set(tutti_cold_options $<$<CONFIG:Release>:-Og> $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>)
# Tests call what is optimised and compute little themselves: compiling them takes longer than running them.
set(tutti_test_options $<$<CONFIG:Release>:-O0>)

# tutti_precompile(TARGET [TEST [HOT]] [COLD]): TARGET uses the precompiled header that was compiled with its options: position-independent
# or not, with which optimisation, and for a TEST with GoogleTest. A HOT test computes much itself, and is compiled as COLD sources are. All are compiled with OpenMP's flag, so that it need not
# be compiled with and without.
function(tutti_precompile target)
  set(headers ${tutti_precompiled_headers})
  set(libraries tutti_compiler fmt::fmt)
  set(name sources)
  set(options "")
  if("TEST" IN_LIST ARGN)
    set(name tests)
    set(options ${tutti_test_options})
    if("HOT" IN_LIST ARGN)
      set(name hot_tests)
      set(options ${tutti_cold_options})
    endif()
    target_compile_options(${target} PRIVATE ${options})
    list(APPEND libraries GTest::gtest)
    list(APPEND headers <gtest/gtest.h>)
    target_link_libraries(${target} PRIVATE GTest::gtest)  # its options are part of the header
  endif()
  # GCC up to 12 reads a header of another optimisation.
  if("COLD" IN_LIST ARGN AND NOT (CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13))
    set(name cold)
    set(options ${tutti_cold_options})
  endif()
  if(NOT TARGET tutti_precompiled_${name})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/${name}.cpp CONTENT "// CMake compiles a precompiled header with a source")
    add_library(tutti_precompiled_${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled/${name}.cpp)
    target_link_libraries(tutti_precompiled_${name} PRIVATE ${libraries})
    target_compile_options(tutti_precompiled_${name} PRIVATE ${options})
    target_precompile_headers(tutti_precompiled_${name} PRIVATE ${headers})
    get_target_property(pic ${target} POSITION_INDEPENDENT_CODE)
    if(pic)
      set_target_properties(tutti_precompiled_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM tutti_precompiled_${name})
endfunction()
