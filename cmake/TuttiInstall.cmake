# `cmake --install`: the program, the static libraries and headers, a CMake package (Tutti::base ...), tutti.pc, the man page and
# the shell completion; tutti/capi adds the communication library for C, tutti/mlsl adds libmlsl. Nothing installed carries an RPATH: the
# libraries in use are the system's.
include(CMakePackageConfigHelpers)

get_property(folders GLOBAL PROPERTY TUTTI_FOLDERS)
set(installed_targets tutti_compiler)
foreach(folder ${folders})
  list(APPEND installed_targets tutti_${folder})
endforeach()
set_target_properties(tutti_compiler PROPERTIES EXPORT_NAME compiler)
install(TARGETS ${installed_targets} EXPORT TuttiTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tutti DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN capi EXCLUDE PATTERN mlsl EXCLUDE)
if(TARGET tutti)
  install(TARGETS tutti RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

list(JOIN folders ", " installed_components)
string(APPEND installed_components ", comm_c")
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tutti)
install(EXPORT TuttiTargets NAMESPACE Tutti:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TuttiConfig.cmake.in ${PROJECT_BINARY_DIR}/TuttiConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TuttiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TuttiConfig.cmake ${PROJECT_BINARY_DIR}/TuttiConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/TuttiDependencies.cmake ${PROJECT_SOURCE_DIR}/cmake/TuttiCommDependencies.cmake DESTINATION ${package_dir} COMPONENT comm)

# The build tree is a package as the installed one is: -DCMAKE_PREFIX_PATH=build, or PKG_CONFIG_PATH=build and pkg-config --cflags, which
# prefers names that end in -uninstalled. A workload of one's own needs no installation then. Libraries to compare with are in no package:
# where they are built in, that of the build tree has what shared objects need alone.
if(TARGET tutti_gloo OR TARGET tutti_oneccl)
  export(TARGETS tutti_compiler tutti_workload NAMESPACE Tutti:: FILE ${PROJECT_BINARY_DIR}/TuttiTargets.cmake)
else()
  export(EXPORT TuttiTargets NAMESPACE Tutti:: FILE ${PROJECT_BINARY_DIR}/TuttiTargets.cmake)
endif()
export(EXPORT TuttiCommTargets NAMESPACE Tutti:: FILE ${PROJECT_BINARY_DIR}/TuttiCommTargets.cmake)
file(COPY ${PROJECT_SOURCE_DIR}/cmake/TuttiDependencies.cmake ${PROJECT_SOURCE_DIR}/cmake/TuttiCommDependencies.cmake DESTINATION ${PROJECT_BINARY_DIR})

# tutti.pc names the static libraries in one group, because pkg-config knows no order among them, and MPI by its own libraries,
# because the name of MPI's .pc file differs between MPI implementations.
set(pc_libraries "")
foreach(folder ${folders})
  get_target_property(type tutti_${folder} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    string(APPEND pc_libraries " -ltutti_${folder}")
  endif()
endforeach()
list(JOIN MPI_CXX_LIBRARIES " " pc_mpi_libraries)
list(TRANSFORM MPI_CXX_INCLUDE_DIRS PREPEND "-I" OUTPUT_VARIABLE pc_mpi_includes)
list(JOIN pc_mpi_includes " " pc_mpi_includes)
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)  # relocatable: `cmake --install --prefix` may name any place
configure_file(${PROJECT_SOURCE_DIR}/packaging/tutti.pc.in ${PROJECT_BINARY_DIR}/tutti.pc @ONLY)
get_property(workload_interface_dir GLOBAL PROPERTY TUTTI_WORKLOAD_INTERFACE_DIR)
configure_file(${PROJECT_SOURCE_DIR}/packaging/tutti-uninstalled.pc.in ${PROJECT_BINARY_DIR}/tutti-uninstalled.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tutti.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The manual page, the completions and docs/configuration.md are what the program itself says, so they cannot differ from it. A program that was built for
# another processor than this one cannot be run here: then they are left out, with a warning.
set(spoken_dir ${PROJECT_BINARY_DIR}/spoken)
add_custom_command(OUTPUT ${spoken_dir}/tutti.1 ${spoken_dir}/tutti.bash ${spoken_dir}/_tutti ${spoken_dir}/tutti.fish ${spoken_dir}/configuration.md
  COMMAND ${CMAKE_COMMAND} -DTUTTI=$<TARGET_FILE:tutti> -DFOLDER=${spoken_dir} -P ${PROJECT_SOURCE_DIR}/cmake/WriteHelp.cmake
  DEPENDS tutti ${PROJECT_SOURCE_DIR}/cmake/WriteHelp.cmake VERBATIM)
add_custom_target(tutti_help ALL DEPENDS ${spoken_dir}/tutti.1)
install(FILES ${spoken_dir}/tutti.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
install(FILES ${spoken_dir}/tutti.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tutti OPTIONAL)
install(FILES ${spoken_dir}/_tutti DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
install(FILES ${spoken_dir}/tutti.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
# Help texts and the README name docs/ and examples/: both lie beside the installed README, and examples where programs keep their data.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tutti)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tutti)
install(FILES ${spoken_dir}/configuration.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tutti/docs OPTIONAL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/tutti USE_SOURCE_PERMISSIONS)
