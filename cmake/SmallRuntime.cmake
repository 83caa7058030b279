# The small runtime: librushlight_runtime.so and a rushlight-run-small on it, which run models of one file and know
# nothing of training (docs/one_file.md). `ninja rushlight_runtime_run` builds them; -DRUSHLIGHT_SMALL_RUNTIME=ON, with
# everything else, and `cmake --install build --component runtime --prefix P` then installs them alone.
set(in_all EXCLUDE_FROM_ALL)
if(RUSHLIGHT_SMALL_RUNTIME)
  set(in_all)
  # Inference seldom asks for sorts, scans, rare reductions, scatters, transforms, random numbers and pools of integers,
  # and then of short lines; files and texts are read once.
  foreach(source
      cpu/byte_depthwise cpu/factory cpu/fft cpu/index cpu/index_lines cpu/lapack_library cpu/linalg cpu/moves cpu/pool
      cpu/random cpu/reduce_rest cpu/scan cpu/search_sorted cpu/select cpu/sort cpu/sort_short cpu/sparse
      generation/added_tokens generation/normalize generation/pattern generation/text_engine generation/text_model
      generation/tokenizer io/archive io/json io/model io/model_file io/safetensors
      jit/executor jit/fold jit/fuse jit/graph_functions jit/lexer jit/memory_plan jit/parse jit/passes jit/quantized
      jit/quantized_sums jit/shapes jit/slices)
    set_source_files_properties("${CMAKE_CURRENT_SOURCE_DIR}/src/${source}.cpp"
      PROPERTIES COMPILE_OPTIONS -Os SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
endif()

# Operators are compiled once more, without derivatives and for size: their loops are elsewhere.
file(GLOB runtime_ops CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/ops/*.cpp")
list(FILTER runtime_ops EXCLUDE REGEX
  "/(register|gradient_ops|foreach|optimizer|random_gradient|view_backward|grid_sample_backward|older_forms|private_[a-z_]*|quantized|quantized_(dynamic|embedding|product|rules)|sparse[a-z_]*)\\.cpp$")
set(runtime_sources "${CMAKE_CURRENT_SOURCE_DIR}/src/small_runtime/register.cpp")
set(narrowed OFF)  # see small_runtime/wide_variants.cpp
if("avx2" IN_LIST isas AND "avx512" IN_LIST isas)
  set(narrowed ON)
endif()
if(narrowed)
  list(APPEND runtime_sources "${CMAKE_CURRENT_SOURCE_DIR}/src/small_runtime/wide_variants.cpp")
endif()
add_library(rushlight_inference OBJECT ${in_all} ${runtime_ops} ${runtime_sources})
target_include_directories(rushlight_inference PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
target_link_libraries(rushlight_inference PRIVATE rushlight_flags rushlight_deps)
target_compile_definitions(rushlight_inference PRIVATE RUSHLIGHT_CORE RUSHLIGHT_INFERENCE)
target_compile_options(rushlight_inference PRIVATE -Os)
precompile(rushlight_inference inference)
if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
  target_compile_options(rushlight_inference PRIVATE
    "SHELL:-include \"${CMAKE_CURRENT_SOURCE_DIR}/src/small_runtime/no_derivatives.h\"")
endif()

# Everything else is the library's.
set(runtime_objects "$<FILTER:$<TARGET_OBJECTS:rushlight>,EXCLUDE,/src/transform/operator_table>"
  "$<FILTER:$<TARGET_OBJECTS:rushlight_frontend>,INCLUDE,/frontend/c_(tensor|model)\\.cpp>"
  $<TARGET_OBJECTS:rushlight_inference>)
foreach(isa ${isas})
  set(left_out "^$")
  if(narrowed AND isa STREQUAL "avx512")
    set(left_out "/isa/(accumulate|activation|affine|arg_extreme|arithmetic|attention_backward|bits|byte_depthwise|cast|chain_product|comparison|ctc|depthwise_lines|distance|double_gemm|embedding_bag|filter_gradient|grid_sample(_backward)?|integer_gemm|line_conv|matrix_vector|norm|packed_conv|pool|quantize|quantized_binary|reduce_(hot|integers)|resample|rnn|small_(matrices|products)|special_[a-z]+|topk|transcendental|weight_product)\\.cpp")
  endif()
  if(narrowed AND isa STREQUAL "avx2")
    set(left_out "/isa/(arg_extreme|attention_backward|bits|distance|grid_sample_backward|reduce_integers|special_[a-z]+)\\.cpp")
  endif()
  list(APPEND runtime_objects "$<FILTER:$<TARGET_OBJECTS:rushlight_${isa}>,EXCLUDE,${left_out}>")
endforeach()
set(runtime_options -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,--disable-new-dtags
  "-Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/src/small_runtime/symbols.map")
if(RUSHLIGHT_HAVE_LLD)
  # Not --icf: it folds functions whose tables for unwinding differ, and a program that fails then crashes.
  list(APPEND runtime_options -Wl,-O2)
endif()

add_library(rushlight_runtime SHARED ${in_all} ${runtime_objects})
target_link_libraries(rushlight_runtime PRIVATE rushlight_flags rushlight_deps)
elf_link_options(rushlight_runtime PRIVATE ${runtime_options} -Wl,--no-undefined)
set_target_properties(rushlight_runtime PROPERTIES LINKER_LANGUAGE CXX
  LIBRARY_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}/lib" BUILD_RPATH "${ORIGIN};${bundled_dirs}" INSTALL_RPATH "${ORIGIN}")

add_executable(rushlight_runtime_run ${in_all} "${CMAKE_CURRENT_SOURCE_DIR}/src/cli/main.cpp")
target_include_directories(rushlight_runtime_run PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src" "${CMAKE_CURRENT_SOURCE_DIR}/include")
target_link_libraries(rushlight_runtime_run PRIVATE rushlight_flags rushlight_runtime)
target_compile_definitions(rushlight_runtime_run PRIVATE RUSHLIGHT_CORE)
elf_link_options(rushlight_runtime_run PRIVATE -Wl,--disable-new-dtags)
set_target_properties(rushlight_runtime_run PROPERTIES OUTPUT_NAME rushlight-run-small
  RUNTIME_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}/bin" BUILD_RPATH "${ORIGIN}/../lib" INSTALL_RPATH "${ORIGIN}/../lib")

# Its size without the mathematics library: the same objects, linked without that.
add_library(rushlight_runtime_own SHARED ${in_all} ${runtime_objects})
target_link_libraries(rushlight_runtime_own PRIVATE rushlight_flags)
elf_link_options(rushlight_runtime_own PRIVATE ${runtime_options} -Wl,--unresolved-symbols=ignore-all -s)
set_target_properties(rushlight_runtime_own PROPERTIES LINKER_LANGUAGE CXX
  LIBRARY_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}/lib")

if(RUSHLIGHT_SMALL_RUNTIME)
  install(TARGETS rushlight_runtime LIBRARY DESTINATION rushlight/lib COMPONENT runtime)
  install(TARGETS rushlight_runtime_run RUNTIME DESTINATION rushlight/bin COMPONENT runtime)
  install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/include/rushlight/c.h" "${CMAKE_CURRENT_SOURCE_DIR}/include/rushlight/runtime.h"
    DESTINATION rushlight/include/rushlight COMPONENT runtime)
  install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/src/core" DESTINATION rushlight/include COMPONENT runtime
    FILES_MATCHING PATTERN "*.h")
  install(FILES ${bundled} DESTINATION rushlight/lib COMPONENT runtime)
endif()
