# The compiler settings that every target of the project shares, as one interface target.
add_library(tutti_compiler INTERFACE)
target_compile_features(tutti_compiler INTERFACE cxx_std_20)
# GCC 12 warns of std::string's own code once it is inlined from a precompiled header (restrict, stringop-overflow, array-bounds), and
# of vectors wider than a register where they are passed only among our own functions (psabi).
set(own_options -Wall -Wextra -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-psabi -march=${TUTTI_MARCH} -fno-math-errno -fno-trapping-math)
if(CMAKE_UNITY_BUILD)
  # A source that is included by another looks like a header, whose types should not hold what an anonymous namespace has.
  list(APPEND own_options -Wno-subobject-linkage)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC collects its garbage from 128 MiB on, which is a tenth of the time of sources that are compiled together and need 1 GiB.
  list(APPEND own_options --param=ggc-min-heapsize=1000000)
endif()
target_compile_options(tutti_compiler INTERFACE "$<BUILD_INTERFACE:${own_options}>")  # not for users of the installed package
target_link_options(tutti_compiler INTERFACE $<BUILD_INTERFACE:LINKER:--build-id>)  # base/build_id.h reads it
target_include_directories(tutti_compiler INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(TUTTI_SANITIZE)
  target_compile_options(tutti_compiler INTERFACE -fsanitize=${TUTTI_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(tutti_compiler INTERFACE -fsanitize=${TUTTI_SANITIZE})
  # GCC 12 stores vectors of 64 bytes to locals that the address sanitizer has moved to where only 32 are sure (GCC bug 110027).
  if(TUTTI_SANITIZE MATCHES address AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(tutti_compiler INTERFACE -mno-avx512f)
  endif()
endif()
if(TUTTI_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "TUTTI_FUZZ needs clang, because libFuzzer is part of it: -DCMAKE_CXX_COMPILER=clang++")
  endif()
  target_compile_options(tutti_compiler INTERFACE -Wno-unknown-warning-option $<BUILD_INTERFACE:-fsanitize=fuzzer-no-link,address,undefined> -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(tutti_compiler INTERFACE $<BUILD_INTERFACE:-fsanitize=address,undefined>)
endif()
# What a release is optimised with, also where a folder is COLD and a source is HOT (TuttiFolder.cmake). With GCC, -O2 and the vectoriser of -O3:
# what else -O3 does takes a fifth of the compiler's time for the kernels, whose loops say themselves what is to be unrolled.
set(tutti_release_options -O3)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(tutti_release_options -O2 -ftree-vectorize -fvect-cost-model=dynamic)
  list(JOIN tutti_release_options " " CMAKE_CXX_FLAGS_RELEASE)
  string(APPEND CMAKE_CXX_FLAGS_RELEASE " -DNDEBUG")
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
