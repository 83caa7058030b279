# benchmarks/cpp on Google Benchmark, where it is found (Debian and Ubuntu: libbenchmark-dev, or unpacked in
# RUSHLIGHT_DEBIAN_ROOT as ./dev does it).
set(unpacked "${RUSHLIGHT_DEBIAN_ROOT}/usr")
find_path(BENCHMARK_INCLUDE_DIR benchmark/benchmark.h HINTS "${unpacked}/include")
find_library(BENCHMARK_LIBRARY benchmark HINTS "${unpacked}/lib" "${unpacked}/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
if(NOT BENCHMARK_INCLUDE_DIR OR NOT BENCHMARK_LIBRARY)
  message(STATUS "Google Benchmark: not found, the C++ benchmarks are left out (install libbenchmark-dev for them)")
  return()
endif()
message(STATUS "Google Benchmark: ${BENCHMARK_LIBRARY}")

file(GLOB benchmark_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/benchmarks/cpp/*.cpp")
add_executable(rushlight_benchmarks ${benchmark_sources})
target_include_directories(rushlight_benchmarks SYSTEM PRIVATE "${BENCHMARK_INCLUDE_DIR}")
target_link_libraries(rushlight_benchmarks PRIVATE rushlight "${BENCHMARK_LIBRARY}" Threads::Threads)
