# The instruction sets that src/cpu/isa is compiled for, in `isas`, and their flags, in isa_flags_<set>.
#   all     baseline, AVX2 and AVX-512: what is installed, and what CI compiles
#   native  baseline and the widest one of this machine: a developer's build
#   avx2    baseline and AVX2, which a wider machine then runs as a narrower one does
# On ARM64 there are the baseline and NEON in each of these.
set(instruction_sets native)
if(SKBUILD OR RUSHLIGHT_SMALL_RUNTIME)
  set(instruction_sets all)
elseif(DEFINED ENV{RUSHLIGHT_INSTRUCTION_SETS})
  set(instruction_sets $ENV{RUSHLIGHT_INSTRUCTION_SETS})
endif()
set(RUSHLIGHT_INSTRUCTION_SETS ${instruction_sets} CACHE STRING "Instruction sets of the kernels: all, native or avx2")
if(NOT RUSHLIGHT_INSTRUCTION_SETS MATCHES "^(all|native|avx2)$")
  message(FATAL_ERROR "RUSHLIGHT_INSTRUCTION_SETS is '${RUSHLIGHT_INSTRUCTION_SETS}'; it can be all, native or avx2.")
endif()

set(isas baseline)
if(RUSHLIGHT_X86_64)
  list(APPEND isas avx2 avx512)
  if(RUSHLIGHT_INSTRUCTION_SETS STREQUAL "avx2")
    list(REMOVE_ITEM isas avx512)
  elseif(RUSHLIGHT_INSTRUCTION_SETS STREQUAL "native")
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -march=native -dM -E -x c++ /dev/null
      OUTPUT_VARIABLE macros ERROR_QUIET)
    set(isas baseline)
    if(macros MATCHES "__AVX512F__" AND macros MATCHES "__AVX512DQ__" AND macros MATCHES "__AVX512BW__"
       AND macros MATCHES "__AVX512VL__")
      list(APPEND isas avx512)
    elseif(macros MATCHES "__AVX2__" AND macros MATCHES "__FMA__" AND macros MATCHES "__F16C__")
      list(APPEND isas avx2)
    endif()
  endif()
endif()
if(RUSHLIGHT_ARM64)
  list(APPEND isas neon)
endif()
list(JOIN isas ", " names)
message(STATUS "Instruction sets: ${names}")

set(isa_flags_avx2 -O3 -mavx2 -mfma -mf16c)
set(isa_flags_avx512 ${isa_flags_avx2} -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512)
# Every ARM64 processor has its instructions; RL_NEON tells this copy from the baseline's. What newer ones have beside
# that is asked for at run time (cpu/isa/byte_product.cpp).
set(isa_flags_neon -O3 -ffp-contract=fast -DRL_NEON=1)
# g++ copies a register's worth of memory in halves, and the processor then waits before it can read it as a whole: a loop
# that rounds its lanes in memory took three times as long on AVX2. clang copies whole registers.
include(CheckCXXCompilerFlag)
if(RUSHLIGHT_X86_64)
  check_cxx_compiler_flag("-mavx2 -mmove-max=256 -mstore-max=256" RUSHLIGHT_HAS_MOVE_MAX)
endif()
if(RUSHLIGHT_HAS_MOVE_MAX)
  list(APPEND isa_flags_avx2 -mmove-max=256 -mstore-max=256)
  list(APPEND isa_flags_avx512 -mmove-max=512 -mstore-max=512)
endif()
# Beside a wider set the baseline runs on processors from before 2013 only, and is kept small: a quarter of the code, half
# of the time to compile. But for types and formulas that have no wider variant it runs everywhere; the small runtime
# gives that up too.
set(only_in_baseline activation arithmetic cast comparison special transcendental)
list(TRANSFORM only_in_baseline REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/src/cpu/isa/\\1.cpp")
if(isas STREQUAL "baseline" AND NOT RUSHLIGHT_SMALL_RUNTIME AND NOT EMSCRIPTEN)
  set(isa_flags_baseline -O3)
elseif(EMSCRIPTEN)
  set(isa_flags_baseline)
else()
  set(isa_flags_baseline -Os)
  if(NOT RUSHLIGHT_SMALL_RUNTIME)
    # g++ 12 does not notice that a header was precompiled for another level, and crashes.
    set_source_files_properties(${only_in_baseline} PROPERTIES COMPILE_OPTIONS -O3 SKIP_PRECOMPILE_HEADERS ON)
  endif()
endif()
foreach(isa ${isas})
  if(NOT isa STREQUAL "baseline")
    string(TOUPPER ${isa} upper)
    target_compile_definitions(rushlight PRIVATE RUSHLIGHT_WITH_${upper}=1)
  endif()
endforeach()
