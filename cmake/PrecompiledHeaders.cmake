# precompile(<target> <header>): compiles cmake/precompiled/<header>.h once and puts it before each unit of the target.
# Half of a typical unit's time was the parsing of the same headers. A unit still includes what it uses: ./dev portable
# builds without this (CMake's option CMAKE_DISABLE_PRECOMPILE_HEADERS).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(precompiled_for_cache -fpch-preprocess)  # what ccache asks for
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(precompiled_for_cache "SHELL:-Xclang -fno-pch-timestamp")
endif()

function(precompile target header)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  # Between <>: with an absolute path a clone elsewhere would find nothing in the compiler's cache.
  target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:<cmake/precompiled/${header}.h$<ANGLE-R>>")
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${precompiled_for_cache}>")
  endif()
endfunction()
