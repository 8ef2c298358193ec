# The standard headers and fmt are most of what a small file compiles, so they are compiled once: one precompiled header for the
# libraries, one with GoogleTest for the tests. Each source still includes what it uses; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
# builds without, and tests/architecture reads the includes themselves.
set(tutti_precompiled_headers
  <fmt/format.h> <fmt/ranges.h> <algorithm> <array> <atomic> <bit> <chrono> <cmath> <condition_variable> <cstddef> <cstdint> <cstring> <deque>
  <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <span> <sstream> <stdexcept> <string> <string_view>
  <thread> <utility> <variant> <vector>)

# tutti_precompile(TARGET [TEST]): TARGET uses the precompiled header that was compiled with its options: with or without OpenMP,
# which it may get from any library that it links, position-independent or not, and for a TEST with GoogleTest.
function(tutti_precompile target)
  set(headers ${tutti_precompiled_headers})
  set(libraries tutti_compiler fmt::fmt)
  set(name plain)
  tutti_links_openmp(${target} openmp)
  if(openmp)
    set(name openmp)
    list(APPEND libraries OpenMP::OpenMP_CXX)
  endif()
  if("TEST" IN_LIST ARGN)
    string(APPEND name _test)
    list(APPEND libraries GTest::gtest)
    list(APPEND headers <gtest/gtest.h>)
  endif()
  if(NOT TARGET tutti_precompiled_${name})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/${name}.cpp CONTENT "// CMake compiles a precompiled header with a source")
    add_library(tutti_precompiled_${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled/${name}.cpp)
    target_link_libraries(tutti_precompiled_${name} PRIVATE ${libraries})
    target_precompile_headers(tutti_precompiled_${name} PRIVATE ${headers})
    get_target_property(pic ${target} POSITION_INDEPENDENT_CODE)
    if(pic)
      set_target_properties(tutti_precompiled_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM tutti_precompiled_${name})
endfunction()

# Whether a target links OpenMP, itself or by a library of ours.
function(tutti_links_openmp target result)
  set(${result} FALSE PARENT_SCOPE)
  if(NOT TARGET ${target} OR NOT target MATCHES "^tutti_")
    return()
  endif()
  get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    get_target_property(libraries ${target} LINK_LIBRARIES)
  endif()
  foreach(library ${libraries})
    tutti_links_openmp(${library} below)
    if(below OR library STREQUAL "OpenMP::OpenMP_CXX")
      set(${result} TRUE PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
