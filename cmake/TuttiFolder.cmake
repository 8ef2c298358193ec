# tutti_folder(NAME [COLD] [HOT_TESTS | SHARED_TESTS] FOUND | SOURCES ... [HOT ...] [EXACT ...] [TESTS ...] [REGISTERS table header] [USES folder...] [LINK target...]
#   [TEST_LINK target...])
# One folder of tutti/ = one static library tutti_NAME (for users of the installed package: Tutti::NAME), plus one test program
# tutti_NAME_test when TESTS are given.
#
# COLD: no step of a training waits for these sources, and their numbers are no weights (command lines, records, reports).
# They are compiled with half the optimisation, which is half the time of the compiler; all but those named as HOT, which are
# compiled apart from them.
# FOUND: the sources are all that lie below the folder, but for those of sub-folders that are a folder of their own, and the tests are
# x_test.cpp among them: a file that is added or removed changes no list. REGISTERS: TuttiRegister.cmake.
# EXACT: sources whose numbers must be the same wherever a loop begins: they are compiled without contraction, apart from the others.
# HOT_TESTS: the tests' own loops take long, so they are optimised, too.
# SHARED_TESTS: the tests are few and part of one program with those of other folders, tutti_rooms_test, which is built in less time.
#
# A release build compiles several sources of a folder as one (CMAKE_UNITY_BUILD in CMakePresets.json): what they all include is
# read once, and the program is built in half the time. So a name in an anonymous namespace is given once in a target
# (architecture.tree looks at functions). Sources with options of their own stay alone.
set(tutti_hot_options "$<$<CONFIG:Release>:${tutti_release_options}>")

# Compiles some sources of a folder's library together, with options of their own.
function(tutti_compile_apart library kind options)
  add_library(${library}_${kind} OBJECT ${ARGN})
  target_compile_options(${library}_${kind} PRIVATE ${options})
  target_link_libraries(${library}_${kind} PRIVATE $<TARGET_PROPERTY:${library},LINK_LIBRARIES>)
  set_target_properties(${library}_${kind} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  tutti_precompile(${library}_${kind})
  target_sources(${library} PRIVATE $<TARGET_OBJECTS:${library}_${kind}>)
endfunction()

# The sources below the current folder, in the order of their paths; CMake looks again at each build.
function(tutti_find_sources sources tests)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
  file(GLOB_RECURSE others CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} */CMakeLists.txt)
  foreach(other ${others})
    get_filename_component(other ${other} DIRECTORY)
    list(FILTER found EXCLUDE REGEX "^${other}/")
  endforeach()
  set(${tests} ${found})
  list(FILTER ${tests} INCLUDE REGEX "_test[.]cpp$")
  list(FILTER found EXCLUDE REGEX "_test[.]cpp$")
  set(${sources} ${found} PARENT_SCOPE)
  set(${tests} ${${tests}} PARENT_SCOPE)
endfunction()

function(tutti_folder name)
  cmake_parse_arguments(arg "COLD;HOT_TESTS;SHARED_TESTS;FOUND" "" "SOURCES;HOT;EXACT;TESTS;REGISTERS;USES;LINK;TEST_LINK" ${ARGN})
  if(arg_FOUND)
    tutti_find_sources(arg_SOURCES arg_TESTS)
    list(REMOVE_ITEM arg_SOURCES ${arg_EXACT} "")
  endif()
  list(TRANSFORM arg_USES PREPEND tutti_)
  if(arg_SOURCES)
    add_library(tutti_${name} STATIC ${arg_SOURCES})
    if(arg_EXACT)
      tutti_compile_apart(tutti_${name} exact -ffp-contract=off ${arg_EXACT})
    endif()
    if(arg_HOT)
      tutti_compile_apart(tutti_${name} hot "${tutti_hot_options}" ${arg_HOT})
    endif()
    if(arg_REGISTERS)
      tutti_register(tutti_${name} ${arg_REGISTERS} ${arg_SOURCES} ${arg_HOT} ${arg_EXACT})
    endif()
    if(arg_COLD)
      target_compile_options(tutti_${name} PRIVATE ${tutti_cold_options})
    endif()
    target_link_libraries(tutti_${name} PUBLIC tutti_compiler fmt::fmt ${arg_USES} ${arg_LINK})
    set_target_properties(tutti_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    if(arg_COLD)
      tutti_precompile(tutti_${name} COLD)
    else()
      tutti_precompile(tutti_${name})
    endif()
  else()
    add_library(tutti_${name} INTERFACE)
    target_link_libraries(tutti_${name} INTERFACE tutti_compiler fmt::fmt ${arg_USES} ${arg_LINK})
  endif()
  set_target_properties(tutti_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY TUTTI_FOLDERS ${name})
  if(TUTTI_BUILD_TESTS AND arg_TESTS)
    set(program tutti_${name}_test)
    if(arg_SHARED_TESTS)
      set(program tutti_rooms_test)
    endif()
    list(TRANSFORM arg_TESTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    if(NOT TARGET ${program})
      add_executable(${program} ${arg_TESTS})
      target_link_libraries(${program} PRIVATE GTest::gtest_main)
      if(arg_HOT_TESTS)
        tutti_precompile(${program} TEST HOT)
      else()
        tutti_precompile(${program} TEST)
      endif()
      if(EXISTS "${TUTTI_TEST_DATA}")
        target_compile_definitions(${program} PRIVATE TUTTI_TEST_DATA="${TUTTI_TEST_DATA}")
      endif()
      string(REGEX REPLACE "^tutti_(.*)_test$" "\\1." prefix ${program})
      gtest_discover_tests(${program} TEST_PREFIX "${prefix}" NO_PRETTY_VALUES DISCOVERY_TIMEOUT 600)
    else()
      target_sources(${program} PRIVATE ${arg_TESTS})
    endif()
    target_link_libraries(${program} PRIVATE tutti_${name} ${arg_TEST_LINK})
  endif()
endfunction()
