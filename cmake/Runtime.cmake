# rushlight-run: models of one file without Python, beside the package's library.
add_executable(rushlight_run "${CMAKE_CURRENT_SOURCE_DIR}/src/cli/main.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/src/cli/generate.cpp")
target_link_libraries(rushlight_run PRIVATE rushlight)
target_compile_definitions(rushlight_run PRIVATE RUSHLIGHT_CORE RUSHLIGHT_GENERATION)
set_target_properties(rushlight_run PROPERTIES OUTPUT_NAME rushlight-run
  RUNTIME_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}/bin" BUILD_RPATH "${ORIGIN}/../lib" INSTALL_RPATH "${ORIGIN}/../lib")
elf_link_options(rushlight_run PRIVATE -Wl,--disable-new-dtags)
install(TARGETS rushlight_run RUNTIME DESTINATION rushlight/bin)
