# Compiler flags common to every target (rushlight_flags), with ccache and lld when they are found.
include(CheckLinkerFlag)

add_library(rushlight_flags INTERFACE)
set(no_interposition -fno-semantic-interposition)
if(EMSCRIPTEN)
  set(no_interposition)
endif()
target_compile_options(rushlight_flags INTERFACE -Wall -Wextra $<$<COMPILE_LANGUAGE:CXX>:-Wno-init-list-lifetime>
  ${no_interposition} -ffunction-sections -fdata-sections)

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Pragmas and attributes for g++; fields that are left to their defaults; `a ? b : c | d` in formulas; constants of
  # formulas that one table of loops does without.
  target_compile_options(rushlight_flags INTERFACE -Wno-unknown-warning-option -Wno-unknown-pragmas
    -Wno-unknown-attributes -Wno-missing-field-initializers -Wno-missing-designated-field-initializers
    -Wno-bitwise-conditional-parentheses -Wno-unused-const-variable)
endif()
if(EMSCRIPTEN)
  # WebAssembly has no processors to choose among: every engine that runs the program has these vectors. Each object is
  # made for threads, and serves the program without them too (cmake/Browser.cmake).
  target_compile_options(rushlight_flags INTERFACE -msimd128 -fwasm-exceptions -pthread)
  target_link_options(rushlight_flags INTERFACE -msimd128 -fwasm-exceptions)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR " g++ ${CMAKE_CXX_COMPILER_VERSION} is too old: Rushlight needs g++ 12 or newer; "
                      "name another compiler in CXX and CC (Debian and Ubuntu: apt install g++-12, CXX=g++-12 CC=gcc-12).")
endif()

# For the linkers of ELF alone; others have other options, or do that anyway.
function(elf_link_options)
  if(NOT APPLE AND NOT WIN32)
    target_link_options(${ARGN})
  endif()
endfunction()
# The folder of a program or library, as its search path for others names it. Windows looks there anyway.
set(ORIGIN "$ORIGIN")
if(APPLE)
  set(ORIGIN "@loader_path")
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the sources count as relative, so that a second clone finds what the first one compiled.
  # A precompiled header is known by its content, and holds what #pragma once compares: the bytes of each header, comments
  # too. So what the preprocessor leaves of a source may not stand for it (depend mode), as it did in the former namespace.
  # The language of messages makes no other objects.
  set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_DEPEND=1 CCACHE_NAMESPACE=bytes
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime,locale" "${CCACHE_PROGRAM}")
  if(EMSCRIPTEN)  # whose name tells ccache nothing
    list(INSERT launcher 3 CCACHE_COMPILERTYPE=clang)
  endif()
  set(CMAKE_C_COMPILER_LAUNCHER "${launcher}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${launcher}")
endif()

check_linker_flag(CXX -fuse-ld=lld RUSHLIGHT_HAVE_LLD)
if(RUSHLIGHT_HAVE_LLD)
  add_link_options(-fuse-ld=lld)
endif()

if(RUSHLIGHT_SANITIZE)
  add_compile_options(-fsanitize=${RUSHLIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1
                      -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${RUSHLIGHT_SANITIZE})
endif()
