# The CUDA backend: librushlight_cuda.so, beside librushlight.so, which loads it when a CUDA device is first asked for.
#   RUSHLIGHT_CUDA=auto  where nvcc is found: in wheels, and as the target rushlight_cuda of a developer's build
#   RUSHLIGHT_CUDA=on    always, or fail; off: never
set(RUSHLIGHT_CUDA auto CACHE STRING "Build the CUDA backend: auto, on or off")
set(RUSHLIGHT_CUDA_ARCHITECTURES 90 CACHE STRING "Compute capabilities to compile for, e.g. 80;90;100")

if(NOT RUSHLIGHT_CUDA STREQUAL "off")
  find_program(RUSHLIGHT_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(RUSHLIGHT_NVCC)
    # CMake stops where nvcc cannot link a program, as in an installation without its runtime library.
    set(CMAKE_CUDA_COMPILER "${RUSHLIGHT_NVCC}")
    find_package(CUDAToolkit QUIET)
    if(TARGET CUDA::cudart_static)
      set(CMAKE_CUDA_ARCHITECTURES ${RUSHLIGHT_CUDA_ARCHITECTURES})
      set(CMAKE_CUDA_STANDARD 20)
      enable_language(CUDA)
    elseif(RUSHLIGHT_CUDA STREQUAL "on")
      message(FATAL_ERROR "RUSHLIGHT_CUDA=on, but ${RUSHLIGHT_NVCC} has no runtime library beside it: "
        "install the whole CUDA toolkit or set CUDA_HOME")
    else()
      unset(CMAKE_CUDA_COMPILER)
      message(STATUS "CUDA backend: left out, ${RUSHLIGHT_NVCC} has no runtime library beside it")
    endif()
  elseif(RUSHLIGHT_CUDA STREQUAL "on")
    message(FATAL_ERROR "RUSHLIGHT_CUDA=on, but no nvcc was found: install the CUDA toolkit or set CUDA_HOME")
  else()
    message(STATUS "CUDA backend: left out, no nvcc was found")
  endif()
endif()

# The headers of kernels made at run time, as text; the tests without a device have them too.
set(rtc_source_dir "${CMAKE_CURRENT_SOURCE_DIR}/src")
set(RUSHLIGHT_RTC_HEADERS "${CMAKE_CURRENT_BINARY_DIR}/rtc_headers.cpp")
file(GLOB rtc_headers CONFIGURE_DEPENDS "${rtc_source_dir}/formulas/*.h" "${rtc_source_dir}/cuda/rtc/*.h")
add_custom_command(OUTPUT "${RUSHLIGHT_RTC_HEADERS}"
  COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${RUSHLIGHT_RTC_HEADERS}" "-DSOURCE=${rtc_source_dir}"
    -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/RtcHeaders.cmake"
  DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/cmake/RtcHeaders.cmake" "${rtc_source_dir}/cuda/fused_kernel.h" ${rtc_headers} VERBATIM)
add_custom_target(rushlight_rtc_headers DEPENDS "${RUSHLIGHT_RTC_HEADERS}")

if(CMAKE_CUDA_COMPILER)
  file(GLOB cuda_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/cuda/*.cpp"
    "${CMAKE_CURRENT_SOURCE_DIR}/src/cuda/*.cu")
  set(cuda_in_all EXCLUDE_FROM_ALL)
  if(RUSHLIGHT_CUDA STREQUAL "on" OR SKBUILD)
    set(cuda_in_all)
  endif()
  # Instructions that only compute capability 9.0 itself has need an architecture of their own (90a).
  set(hopper_sources ${cuda_sources})
  list(FILTER hopper_sources INCLUDE REGEX "_hopper[a-z_]*[.]cu$")
  set(hopper_objects)
  if("90" IN_LIST RUSHLIGHT_CUDA_ARCHITECTURES)
    list(REMOVE_ITEM cuda_sources ${hopper_sources})
    add_library(rushlight_hopper OBJECT EXCLUDE_FROM_ALL ${hopper_sources})
    set_target_properties(rushlight_hopper PROPERTIES CUDA_ARCHITECTURES 90a-real POSITION_INDEPENDENT_CODE ON)
    target_compile_definitions(rushlight_hopper PRIVATE RL_HOPPER)
    set(hopper_objects $<TARGET_OBJECTS:rushlight_hopper>)
  endif()
  add_library(rushlight_cuda SHARED ${cuda_in_all} ${cuda_sources} ${hopper_objects} "${RUSHLIGHT_RTC_HEADERS}")
  add_dependencies(rushlight_cuda rushlight_rtc_headers)
  # 20208: long double, of which formulas hold constants, is double on the device. 20091: the host reads no table of
  # the device. 1675: pragmas of g++. 1835: how the host finds variables of threads, which nvcc passes on to g++.
  foreach(target rushlight_cuda rushlight_hopper)
    if(NOT TARGET ${target})
      continue()
    endif()
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;--extended-lambda;-diag-suppress=20208,20091,1675,1835>"
      "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:--Werror cross-execution-space-call>")
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
    target_compile_definitions(${target} PRIVATE RUSHLIGHT_CORE)
    target_link_libraries(${target} PRIVATE rushlight CUDA::cudart_static)
  endforeach()
  list(TRANSFORM RUSHLIGHT_CUDA_ARCHITECTURES PREPEND "sm_" OUTPUT_VARIABLE cuda_architectures)
  string(REPLACE ";" " " cuda_architectures "${cuda_architectures}")
  target_compile_definitions(rushlight_cuda PRIVATE "RL_CUDA_ARCHITECTURES=\"${cuda_architectures}\"")
  set_target_properties(rushlight_cuda PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}/lib" BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
  if(NOT cuda_in_all)
    install(TARGETS rushlight_cuda LIBRARY DESTINATION rushlight/lib)
  endif()
endif()
