# One interface target, rushlight_deps, carries the include folders, link line and RUSHLIGHT_WITH_* definitions of the
# chosen libraries. The configuration none/off/off needs nothing but a compiler.

include(Wheels)

if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(RUSHLIGHT_X86_64 ON)
  set(default_blas mkl)
  set(default_intel on)
else()
  set(RUSHLIGHT_X86_64 OFF)
  set(default_blas openblas)
  set(default_intel off)
endif()
set(RUSHLIGHT_BLAS ${default_blas} CACHE STRING "BLAS, LAPACK and FFT: mkl, openblas or none")
set(RUSHLIGHT_ONEDNN ${default_intel} CACHE STRING "oneDNN for convolution, pooling, normalisation: on or off")
set(RUSHLIGHT_TBB ${default_intel} CACHE STRING "oneTBB under parallel_for: on or off")
set_property(CACHE RUSHLIGHT_BLAS PROPERTY STRINGS mkl openblas none)
set_property(CACHE RUSHLIGHT_ONEDNN PROPERTY STRINGS on off)
set_property(CACHE RUSHLIGHT_TBB PROPERTY STRINGS on off)

add_library(rushlight_deps INTERFACE)
find_package(Threads REQUIRED)
target_link_libraries(rushlight_deps INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

function(with_feature name)
  target_compile_definitions(rushlight_deps INTERFACE RUSHLIGHT_WITH_${name}=1)
endfunction()

if(RUSHLIGHT_TBB OR RUSHLIGHT_ONEDNN)
  wheel_library(tbb_runtime tbb libtbb.so.12)
endif()

if(RUSHLIGHT_TBB)
  wheel_include(tbb_include tbb-devel tbb/parallel_for.h)
  target_include_directories(rushlight_deps SYSTEM INTERFACE "${tbb_include}")
  with_feature(TBB)
endif()

if(RUSHLIGHT_BLAS STREQUAL "mkl")
  wheel_include(mkl_include mkl-include mkl.h)
  wheel_file(mkl_interface mkl-static libmkl_intel_lp64.a)
  if(RUSHLIGHT_TBB)
    wheel_file(mkl_threads mkl-static libmkl_tbb_thread.a)
  else()
    wheel_file(mkl_threads mkl-static libmkl_sequential.a)
  endif()
  wheel_file(mkl_core mkl-static libmkl_core.a)
  wheel_licence(mkl-static)
  target_include_directories(rushlight_deps SYSTEM INTERFACE "${mkl_include}")
  target_link_libraries(rushlight_deps INTERFACE
    "$<LINK_GROUP:RESCAN,${mkl_interface},${mkl_threads},${mkl_core}>" m)
  with_feature(MKL)
  # Kernels for processors of 2008 to 2012 are left out: cmake/alias_mkl_kernels.py
  set(mkl_aliases "${CMAKE_CURRENT_BINARY_DIR}/mkl_aliases.cpp")
  if(CMAKE_NM AND "${CMAKE_CURRENT_LIST_DIR}/alias_mkl_kernels.py" IS_NEWER_THAN "${mkl_aliases}")
    execute_process(COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/alias_mkl_kernels.py" "${CMAKE_NM}"
      "${mkl_core}" "${mkl_aliases}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
elseif(RUSHLIGHT_BLAS STREQUAL "openblas")
  # This build prefixes its symbols: its cblas.h declares scipy_cblas_sgemm, its LAPACK is scipy_spotrf_.
  wheel_include(openblas_include scipy-openblas32 cblas.h)
  wheel_library(openblas scipy-openblas32 libscipy_openblas.so)
  target_include_directories(rushlight_deps SYSTEM INTERFACE "${openblas_include}")
  target_link_libraries(rushlight_deps INTERFACE openblas)
  with_feature(OPENBLAS)
elseif(NOT RUSHLIGHT_BLAS STREQUAL "none")
  message(FATAL_ERROR "RUSHLIGHT_BLAS is '${RUSHLIGHT_BLAS}'; it can be mkl, openblas or none.")
endif()

if(RUSHLIGHT_ONEDNN)
  wheel_include(dnnl_include onednn-devel-cpu-tbb oneapi/dnnl/dnnl.hpp)
  wheel_library(dnnl onednn-cpu-tbb libdnnl.so.3)
  wheel_library(intel_math intel-cmplr-lib-rt libimf.so)
  wheel_library(intel_base intel-cmplr-lib-rt libintlc.so.5)
  target_include_directories(rushlight_deps SYSTEM INTERFACE "${dnnl_include}")
  # Loaded with its first use (cpu/onednn_api.h), by the path of the library that asks for it. A program that links the
  # static library has no such path, so that one names them, and all that libdnnl needs.
  set(loaded_when_used dnnl intel_math intel_base)
  target_link_options(rushlight_deps INTERFACE -Wl,--no-as-needed)
  with_feature(ONEDNN)
endif()

if(TARGET tbb_runtime)
  target_link_libraries(rushlight_deps INTERFACE tbb_runtime)
endif()
