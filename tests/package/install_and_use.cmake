# Run by CTest with `cmake -P`; see CMakeLists.txt for the variables.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

set(prefix ${WORK_DIR}/prefix)
file(REMOVE_RECURSE ${prefix} ${WORK_DIR}/by_cmake ${WORK_DIR}/by_pkg_config)
run("install" ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
foreach(file bin/tutti share/man/man1/tutti.1 share/bash-completion/completions/tutti
    share/zsh/site-functions/_tutti share/fish/vendor_completions.d/tutti.fish include/tutti/base/error.h
    share/doc/tutti/README.md share/doc/tutti/docs/cli.md share/tutti/examples/lattices_resnet.toml share/tutti/examples/jobs/slurm.sh)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()

file(READ ${prefix}/share/doc/tutti/docs/configuration.md page)
if(NOT page MATCHES "`optimizer.lr`")
  message(FATAL_ERROR "the installed docs/configuration.md does not list the keys")
endif()

run("readelf" ${READELF} -d ${prefix}/bin/tutti)
if(output MATCHES "R(UN)?PATH")
  message(FATAL_ERROR "the installed program carries an RPATH:\n${output}")
endif()
run("the installed program" ${prefix}/bin/tutti --version)
if(NOT output MATCHES "${VERSION}")
  message(FATAL_ERROR "tutti --version does not name ${VERSION}:\n${output}")
endif()

run("configuring the consumer" ${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/by_cmake -G ${GENERATOR}
  -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${prefix})
run("building the consumer by find_package" ${CMAKE_COMMAND} --build ${WORK_DIR}/by_cmake)
run("the consumer built by find_package" ${WORK_DIR}/by_cmake/consumer)

# A misspelt component is named, with those that there are.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/misspelt -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${prefix} -DTUTTI_COMPONENT=modles RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
if(status EQUAL 0 OR NOT output MATCHES "Tutti has no component modles in ${prefix}\\. .* has: .*models.*comm_c")
  message(FATAL_ERROR "find_package(Tutti COMPONENTS modles) said (${status}):\n${output}")
endif()

set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
run("pkg-config" pkg-config --cflags --libs tutti)
separate_arguments(flags UNIX_COMMAND "${output}")
list(APPEND flags ${SANITIZE_FLAG})
file(MAKE_DIRECTORY ${WORK_DIR}/by_pkg_config)
run("building the consumer by pkg-config" ${CXX} ${CONSUMER_DIR}/consumer.cpp -o ${WORK_DIR}/by_pkg_config/consumer ${flags})
run("the consumer built by pkg-config" ${WORK_DIR}/by_pkg_config/consumer)

# The communication library in C++: it looks for nothing that only kernels need.
file(REMOVE_RECURSE ${WORK_DIR}/comm_by_cmake)
run("configuring examples/comm" ${CMAKE_COMMAND} -S ${EXAMPLE_DIR} -B ${WORK_DIR}/comm_by_cmake -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DWITH_CXX=ON
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_C_FLAGS=${SANITIZE_FLAG} -DCMAKE_DISABLE_FIND_PACKAGE_dnnl=ON -DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON)
run("building examples/comm" ${CMAKE_COMMAND} --build ${WORK_DIR}/comm_by_cmake)
run("examples/comm in C++" ${MPIEXEC} ${MPIEXEC_NUMPROC_FLAG} 2 ${WORK_DIR}/comm_by_cmake/mean_cpp)
if(NOT output MATCHES "the mean of the ranks and 9 is 9[.]5(\n|$)")
  message(FATAL_ERROR "mean_cpp printed\n${output}")
endif()
