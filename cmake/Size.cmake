# What makes a wheel smaller at the cost of a longer build; docs/releasing.md has the figures.
option(RUSHLIGHT_SLIM_LIBRARIES "Leave out of oneDNN and Gloo what Rushlight never reaches (cmake/slim_*.py)" OFF)

# The target `dnnl`: a copy of the library without that code, which needs nothing of Intel's compiler.
function(slim_onednn)
  wheel_file(library onednn-cpu-tbb libdnnl.so.3)
  wheel_licence(onednn-cpu-tbb)
  if(NOT CMAKE_OBJDUMP)
    message(FATAL_ERROR "RUSHLIGHT_SLIM_LIBRARIES needs objdump, which is part of binutils.")
  endif()
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/slim_onednn.py")
  set(slim "${CMAKE_CURRENT_BINARY_DIR}/slim/libdnnl.so.3")
  if("${script}" IS_NEWER_THAN "${slim}" OR "${library}" IS_NEWER_THAN "${slim}")
    file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/slim")
    execute_process(COMMAND "${Python_EXECUTABLE}" "${script}" "${CMAKE_OBJDUMP}" "${library}" "${slim}"
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
  add_library(dnnl SHARED IMPORTED GLOBAL)
  set_target_properties(dnnl PROPERTIES IMPORTED_LOCATION "${slim}")
  set_property(GLOBAL APPEND PROPERTY RUSHLIGHT_BUNDLED "${slim}")
  # The licence asks that changes are told of.
  install(FILES "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/slim_onednn.txt" DESTINATION rushlight/lib/licenses
    RENAME onednn-cpu-tbb-changes.txt)
endfunction()

# A copy of Gloo that needs neither InfiniBand nor Redis, as GLOO_LIBRARY of the calling file.
function(slim_gloo)
  file(REAL_PATH "${GLOO_LIBRARY}" library)
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/slim")
  file(MAKE_DIRECTORY "${dir}")
  cmake_path(GET library FILENAME name)
  string(REGEX REPLACE "(\\.so\\.[0-9]+).*" "\\1" name "${name}")
  execute_process(COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/slim_gloo.py" "${library}"
    "${dir}/${name}" COMMAND_ERROR_IS_FATAL ANY)
  set(GLOO_LIBRARY "${dir}/${name}" PARENT_SCOPE)
  set(slim_gloo_dir "${dir}" PARENT_SCOPE)
  install(FILES "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/slim_gloo.txt" DESTINATION rushlight/lib/licenses
    RENAME libgloo-changes.txt)
endfunction()
