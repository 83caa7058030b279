# The library as WebAssembly, for browsers and Node (docs/browser.md): a program, and the script that starts it, which
# src/web/js is written on. ./dev wasm builds both of them:
#   rushlight          one thread, for any page
#   rushlight-threads  memory that workers share: engines give it to pages that are isolated from other origins
# The objects are the same; all of them know atomic operations.
file(GLOB browser_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/web/*.cpp")
add_library(rushlight_web OBJECT EXCLUDE_FROM_ALL ${browser_sources})
target_include_directories(rushlight_web PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src" "${CMAKE_CURRENT_SOURCE_DIR}/include")
target_link_libraries(rushlight_web PRIVATE rushlight_flags rushlight_deps)
target_compile_definitions(rushlight_web PRIVATE RUSHLIGHT_FRONTEND)
target_compile_options(rushlight_web PRIVATE -O1)

set(exported malloc free rl_browser_alloc rl_browser_model rl_browser_set_threads rl_last_error rl_tensor_release
  rl_tensor_empty rl_tensor_dim rl_tensor_sizes rl_tensor_numel rl_tensor_dtype rl_tensor_data rl_tensor_item rl_tensor_set_requires_grad
  rl_tensor_backward rl_tensor_grad rl_set_grad_enabled rl_call rl_schema rl_manual_seed rl_model_release
  rl_model_method_count rl_model_method rl_model_method_sizes rl_model_method_input rl_model_method_output
  rl_model_state_count rl_model_run rl_session_create rl_session_clone rl_session_release rl_session_reset rl_session_run
  rl_module_create rl_module_forward rl_module_release rl_module_train rl_module_tensor_count rl_module_tensor
  rl_optimizer_create rl_optimizer_release rl_optimizer_step rl_optimizer_zero_grad rl_optimizer_set_lr)
list(TRANSFORM exported PREPEND "_")
list(JOIN exported "," exported)

# No file system: models come as bytes. Memory grows up to what 32 bits can name; where it cannot, the library hears of it.
function(browser_program target name runtime_methods)
  add_executable(${target} EXCLUDE_FROM_ALL ${ARGN} $<TARGET_OBJECTS:rushlight_web> $<TARGET_OBJECTS:rushlight>
    $<TARGET_OBJECTS:rushlight_ops> $<TARGET_OBJECTS:rushlight_baseline> $<TARGET_OBJECTS:rushlight_frontend>)
  target_link_libraries(${target} PRIVATE rushlight_flags rushlight_deps)
  target_link_options(${target} PRIVATE -O1 --no-entry "-sEXPORTED_FUNCTIONS=${exported}"
    -sEXPORTED_RUNTIME_METHODS=${runtime_methods} -sINCOMING_MODULE_JS_API=instantiateWasm -sMODULARIZE=1 -sEXPORT_ES6=1
    -sENVIRONMENT=web,worker,node -sFILESYSTEM=0 -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sINITIAL_MEMORY=64MB
    -sSTACK_SIZE=2MB -sABORTING_MALLOC=0 -sWASM_BIGINT=1)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${name} SUFFIX .mjs
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/wasm")
endfunction()

enable_language(ASM)
set_source_files_properties(src/web/thread_local_base.s PROPERTIES COMPILE_OPTIONS -Wno-unused-command-line-argument)
browser_program(rushlight_browser rushlight wasmMemory src/web/thread_local_base.s)
browser_program(rushlight_browser_threads rushlight-threads wasmMemory,PThread)
# The workers are there before anyone asks for a thread: none comes while its caller waits. A thread more is refused.
target_link_options(rushlight_browser_threads PRIVATE -pthread "-sPTHREAD_POOL_SIZE=Module['workers']"
  -sPTHREAD_POOL_SIZE_STRICT=2 -Wno-pthreads-mem-growth)
