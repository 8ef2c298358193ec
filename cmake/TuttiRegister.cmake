# tutti_register(TARGET TABLE HEADER SOURCE...) adds to TARGET a source that calls each function `void register_NAME(TABLE& table)` which the
# sources of the folder define, in the order of their paths. Such a source is found by the build itself, and no list of them is kept by hand: the
# list is made anew when a source has changed, and compiled anew when it is another. HEADER declares TABLE and `void register_all(TABLE&)`.
#
# The same file is the script that makes the list: cmake -DTABLE= -DHEADER= -DFOLDER= -DSOURCES=A|B... -DLIST= -P TuttiRegister.cmake
function(tutti_register target table header)
  set(sources ${ARGN})
  list(JOIN sources "|" joined)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${table}_list.cpp)
  add_custom_command(OUTPUT ${list}
    COMMAND ${CMAKE_COMMAND} -DTABLE=${table} -DHEADER=${header} -DFOLDER=${CMAKE_CURRENT_SOURCE_DIR} "-DSOURCES=${joined}" -DLIST=${list} -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    DEPENDS ${sources} ${CMAKE_CURRENT_FUNCTION_LIST_FILE} VERBATIM COMMENT "Listing what registers in ${table}")
  target_sources(${target} PRIVATE ${list})
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()
string(REPLACE "|" ";" sources "${SOURCES}")
list(SORT sources)
foreach(source ${sources})
  file(STRINGS ${FOLDER}/${source} lines REGEX "^void register_[a-z0-9_]+\\(${TABLE}& ")
  foreach(line ${lines})
    string(REGEX REPLACE "^void (register_[a-z0-9_]+).*" "\\1" name "${line}")
    string(APPEND declarations "void ${name}(${TABLE}&);  // ${source}\n")
    string(APPEND calls "  ${name}(table);\n")
  endforeach()
endforeach()
set(text "#include \"${HEADER}\"\n\nnamespace tutti::backend {\n\n${declarations}\nvoid register_all(${TABLE}& table) {\n${calls}}\n\n}  // namespace tutti::backend\n")
if(EXISTS ${LIST})
  file(READ ${LIST} before)
endif()
if(NOT "${text}" STREQUAL "${before}")
  file(WRITE ${LIST} "${text}")
endif()
