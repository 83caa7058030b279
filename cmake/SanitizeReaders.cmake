# -DRUSHLIGHT_SANITIZE_READERS=address,undefined compiles what reads files with sanitizers, and the allocator so that
# each tensor is a block of malloc's; everything else is as usual. Headers must not see the sanitizer, or the two halves
# would not agree on what objects look like.
file(GLOB reader_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/io/*.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/src/jit/*.cpp"
  "${CMAKE_CURRENT_SOURCE_DIR}/src/generation/*.cpp")
foreach(name ivalue pickle script serialize)
  list(APPEND reader_sources "${CMAKE_CURRENT_SOURCE_DIR}/src/frontend/${name}.cpp")
endforeach()
set(reader_flags -fsanitize=${RUSHLIGHT_SANITIZE_READERS} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
set_source_files_properties(${reader_sources} PROPERTIES COMPILE_OPTIONS
  "${reader_flags};-U__SANITIZE_ADDRESS__;-D_GLIBCXX_ASSERTIONS")
set_source_files_properties("${CMAKE_CURRENT_SOURCE_DIR}/src/core/cpu_allocator.cpp" PROPERTIES COMPILE_OPTIONS
  "${reader_flags}")
# A precompiled header is for units without sanitizers.
set_source_files_properties(${reader_sources} "${CMAKE_CURRENT_SOURCE_DIR}/src/core/cpu_allocator.cpp" PROPERTIES
  SKIP_PRECOMPILE_HEADERS ON)
add_link_options(-fsanitize=${RUSHLIGHT_SANITIZE_READERS})
