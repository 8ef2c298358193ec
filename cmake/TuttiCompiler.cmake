# The compiler settings that every target of the project shares, as one interface target.
add_library(tutti_compiler INTERFACE)
target_compile_features(tutti_compiler INTERFACE cxx_std_20)
set(own_options -Wall -Wextra -Wno-restrict -march=${TUTTI_MARCH} -fno-math-errno -fno-trapping-math)
target_compile_options(tutti_compiler INTERFACE "$<BUILD_INTERFACE:${own_options}>")  # not for users of the installed package
target_include_directories(tutti_compiler INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(TUTTI_SANITIZE)
  target_compile_options(tutti_compiler INTERFACE -fsanitize=${TUTTI_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(tutti_compiler INTERFACE -fsanitize=${TUTTI_SANITIZE})
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
