# The project's version is defined here only; the public header repeats it, as programs compile with it before
# anything is configured.
function(vellum_check_header_version header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  file(READ ${header} text)
  foreach(line "MAJOR ${PROJECT_VERSION_MAJOR}" "MINOR ${PROJECT_VERSION_MINOR}"
               "PATCH ${PROJECT_VERSION_PATCH}" "STRING \"${PROJECT_VERSION}\"")
    string(FIND "${text}" "#define VELLUM_VERSION_${line}\n" found)
    if(found EQUAL -1)
      message(FATAL_ERROR "${header}: lacks '#define VELLUM_VERSION_${line}', the project's version")
    endif()
  endforeach()
endfunction()
vellum_check_header_version(${PROJECT_SOURCE_DIR}/include/vellum/version.h)
