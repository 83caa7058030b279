# For browsers and Node, by Emscripten, whose folder RUSHLIGHT_EMSCRIPTEN names. ./dev wasm uses it.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RUSHLIGHT_EMSCRIPTEN)
include("${RUSHLIGHT_EMSCRIPTEN}/cmake/Modules/Platform/Emscripten.cmake")
