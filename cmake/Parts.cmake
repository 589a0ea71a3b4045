# The optional parts of a build. Each has an option of three values: AUTO, the default, builds the part if its
# dependencies are found; ON makes a missing dependency an error; OFF leaves the part out. A table at the end of
# configuring lists the built parts, and the missing dependencies of the others.

# vellum_part(<name> <text> [<variable> <what>]...) defines the option VELLUM_<name> and sets VELLUM_WITH_<name>.
# The part is built if every variable is true; `what` is the table's text for one that is not. A variable
# VELLUM_WITH_<other> represents another part that this one needs.
function(vellum_part name text)
  set(option VELLUM_${name})
  set(${option} AUTO CACHE STRING "${text}: AUTO, ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  vellum_find_reasons(reasons ${ARGN})

  if(${option} STREQUAL AUTO)
    set(with TRUE)
    if(reasons)
      set(with FALSE)
    endif()
  elseif(${option} AND reasons)
    message(FATAL_ERROR "${option} is ON, but: ${reasons}")
  else()
    set(with ${${option}})
  endif()

  if(with)
    set(state yes)
  elseif(NOT ${option} STREQUAL AUTO)
    set(state "no (${option}=${${option}})")
  else()
    set(state "no, ${reasons}")
  endif()
  vellum_summarise("${text}" "${state}")
  set(VELLUM_WITH_${name} ${with} PARENT_SCOPE)
endfunction()

# vellum_find_reasons(<out> [<variable> <what>]...): why a part cannot be built; empty if it can.
function(vellum_find_reasons out)
  set(needed "")
  set(missing "")
  while(ARGN)
    list(POP_FRONT ARGN variable what)
    if(${variable})
      continue()
    elseif(variable MATCHES "^VELLUM_WITH_")
      list(APPEND needed "needs the ${what}")
    else()
      list(APPEND missing "${what}")
    endif()
  endwhile()
  list(JOIN missing ", " missing)
  set(reasons ${needed})
  if(missing)
    list(APPEND reasons "not found: ${missing}")
  endif()
  list(JOIN reasons "; " reasons)
  set(${out} "${reasons}" PARENT_SCOPE)
endfunction()

# vellum_require(<what> <variable>): a required dependency of the library. vellum_print_summary() names all missing
# ones at once.
function(vellum_require what variable)
  set(state yes)
  if(NOT ${variable})
    set(state "NOT FOUND, and nothing is built without it")
    set_property(GLOBAL APPEND PROPERTY VELLUM_LACKING "${what}")
  endif()
  vellum_summarise("${what}" "${state}")
endfunction()

# Adds a line to the table.
function(vellum_summarise text state)
  string(LENGTH "${text}" length)
  math(EXPR padding "40 - ${length}")
  string(REPEAT " " ${padding} spaces)
  set_property(GLOBAL APPEND_STRING PROPERTY VELLUM_SUMMARY "  ${text}${spaces}${state}\n")
endfunction()

function(vellum_print_summary)
  get_property(lines GLOBAL PROPERTY VELLUM_SUMMARY)
  message(STATUS "Vellum ${PROJECT_VERSION} builds:\n${lines}")
  file(WRITE ${PROJECT_BINARY_DIR}/parts.txt "${lines}")  # tools/test.sh repeats the parts that are not built
  get_property(lacking GLOBAL PROPERTY VELLUM_LACKING)
  if(lacking)
    list(JOIN lacking ", " lacking)
    message(FATAL_ERROR "Vellum is not built without: ${lacking}. "
                        "tools/install-deps.sh --for build installs them on Debian.")
  endif()
endfunction()
