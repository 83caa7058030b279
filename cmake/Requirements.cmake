# What a build needs of the machine. What is missing is said with what to do, before CMake says it at length; text that
# begins with a space stays one line.
if(NOT CMAKE_CXX_COMPILER AND NOT CMAKE_TOOLCHAIN_FILE AND NOT DEFINED ENV{CXX})
  find_program(any_compiler NAMES c++ g++ clang++ NO_CACHE)
  if(NOT any_compiler)
    message(FATAL_ERROR " no C++ compiler: install g++ 12 or newer (Debian and Ubuntu: apt install g++), or name one in CXX.")
  endif()
endif()

macro(require_python version)
  if(EMSCRIPTEN)  # nothing there is Python's
    find_package(Python ${version} QUIET COMPONENTS Interpreter)
    set(Python_FOUND ON)
  else()
    find_package(Python ${version} QUIET COMPONENTS Interpreter Development.Module)
  endif()
  if(RUSHLIGHT_SOABI)  # of another system, whose interpreter cannot be asked
    set(Python_SOABI "${RUSHLIGHT_SOABI}")
  endif()
  if(NOT Python_Interpreter_FOUND)
    message(FATAL_ERROR " no Python ${version} or newer: install one, or name it with -DPython_EXECUTABLE=...")
  elseif(NOT Python_FOUND)
    message(FATAL_ERROR " no headers for ${Python_EXECUTABLE}: install them (Debian and Ubuntu: apt install python3-dev).")
  endif()
endmacro()
