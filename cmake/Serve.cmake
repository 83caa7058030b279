# rushlight-serve: models of one file behind HTTP, where Boost's headers are found (Debian and Ubuntu: libboost-dev), with
# TLS where OpenSSL's are too (libssl-dev). Debian's packages may also lie unpacked in RUSHLIGHT_DEBIAN_ROOT.
set(RUSHLIGHT_SERVE "auto" CACHE STRING "The server rushlight-serve: on, off, or auto (where Boost is found)")
set(serve_tls auto)
if(SKBUILD)
  set(serve_tls off)  # a wheel's OpenSSL would grow old in it
endif()
set(RUSHLIGHT_SERVE_TLS ${serve_tls} CACHE STRING "TLS in rushlight-serve: on, off, or auto (where OpenSSL is found)")
if(RUSHLIGHT_SERVE STREQUAL "off")
  return()
endif()

set(unpacked "${RUSHLIGHT_DEBIAN_ROOT}/usr")
find_path(BOOST_BEAST_INCLUDE_DIR boost/beast.hpp HINTS "${unpacked}/include")
if(NOT BOOST_BEAST_INCLUDE_DIR)
  if(RUSHLIGHT_SERVE STREQUAL "on")
    message(FATAL_ERROR "the server was asked for, but Boost's headers were not found: install libboost-dev, or name its "
                        "unpacked package in RUSHLIGHT_DEBIAN_ROOT.")
  endif()
  message(STATUS "Boost: not found, rushlight-serve is left out (install libboost-dev for it)")
  return()
endif()
message(STATUS "Boost: ${BOOST_BEAST_INCLUDE_DIR}")

file(GLOB serve_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/serve/*.cpp")
set(page "${CMAKE_CURRENT_SOURCE_DIR}/src/serve/page.html")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${page}")
file(READ "${page}" page_text)
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/serve_page.cpp" @ONLY CONTENT
  "#include \"serve/page.h\"\nconst std::string_view rushlight::serve::kPage = R\"~page~(@page_text@)~page~\";\n")

file(STRINGS "${CMAKE_CURRENT_SOURCE_DIR}/pyproject.toml" version REGEX "^version = ")
string(REGEX REPLACE ".*\"(.*)\"" "\\1" version "${version}")
add_executable(rushlight_serve ${serve_sources} "${CMAKE_CURRENT_BINARY_DIR}/serve_page.cpp")
target_link_libraries(rushlight_serve PRIVATE rushlight)
target_include_directories(rushlight_serve SYSTEM PRIVATE "${BOOST_BEAST_INCLUDE_DIR}")
target_compile_definitions(rushlight_serve PRIVATE RUSHLIGHT_CORE RUSHLIGHT_VERSION="${version}"
  BOOST_ASIO_NO_DEPRECATED)
target_compile_options(rushlight_serve PRIVATE -Os)
target_link_options(rushlight_serve PRIVATE -Wl,--gc-sections -Wl,--disable-new-dtags)
set_target_properties(rushlight_serve PROPERTIES OUTPUT_NAME rushlight-serve
  RUNTIME_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}/bin" BUILD_RPATH "$ORIGIN/../lib" INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS rushlight_serve RUNTIME DESTINATION rushlight/bin)

if(RUSHLIGHT_SERVE_TLS STREQUAL "off")
  return()
endif()
find_path(OPENSSL_HEADERS openssl/ssl.h HINTS "${unpacked}/include")
find_library(OPENSSL_SSL ssl HINTS "${unpacked}/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
find_library(OPENSSL_CRYPTO crypto HINTS "${unpacked}/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
if(OPENSSL_HEADERS AND OPENSSL_SSL AND OPENSSL_CRYPTO)
  # Where a processor's configuration lies, as Debian puts it.
  target_include_directories(rushlight_serve SYSTEM PRIVATE "${OPENSSL_HEADERS}"
    "${OPENSSL_HEADERS}/${CMAKE_LIBRARY_ARCHITECTURE}")
  target_link_libraries(rushlight_serve PRIVATE "${OPENSSL_SSL}" "${OPENSSL_CRYPTO}" ${CMAKE_DL_LIBS})
  target_compile_definitions(rushlight_serve PRIVATE RUSHLIGHT_WITH_TLS)
elseif(RUSHLIGHT_SERVE_TLS STREQUAL "on")
  message(FATAL_ERROR "TLS was asked for, but OpenSSL was not found: install libssl-dev.")
else()
  message(STATUS "OpenSSL: not found, rushlight-serve will have no TLS (install libssl-dev for it)")
endif()
