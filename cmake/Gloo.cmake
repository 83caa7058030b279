# Process groups on the CPU: the extension module _gloo, where Gloo is found (Debian and Ubuntu: libgloo-dev). Debian's
# packages may also lie unpacked in RUSHLIGHT_DEBIAN_ROOT, as ./dev does it where nothing can be installed.
set(RUSHLIGHT_GLOO "auto" CACHE STRING "Process groups on Gloo: on, off, or auto (where it is found)")
set(RUSHLIGHT_DEBIAN_ROOT "" CACHE PATH "A folder of unpacked Debian packages to look into")
if(RUSHLIGHT_GLOO STREQUAL "off")
  return()
endif()

set(unpacked "${RUSHLIGHT_DEBIAN_ROOT}/usr")
find_path(GLOO_INCLUDE_DIR gloo/context.h HINTS "${unpacked}/include")
find_library(GLOO_LIBRARY gloo HINTS "${unpacked}/lib" "${unpacked}/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
if(NOT GLOO_INCLUDE_DIR OR NOT GLOO_LIBRARY)
  if(RUSHLIGHT_GLOO STREQUAL "on")
    message(FATAL_ERROR "Gloo was asked for but not found: install libgloo-dev, or name its unpacked package in "
                        "RUSHLIGHT_DEBIAN_ROOT.")
  endif()
  message(STATUS "Gloo: not found, torch.distributed will have no process groups (install libgloo-dev for them)")
  return()
endif()
message(STATUS "Gloo: ${GLOO_LIBRARY}")

file(GLOB gloo_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/distributed/gloo/*.cpp"
                                         "${CMAKE_CURRENT_SOURCE_DIR}/src/python/gloo/*.cpp")
Python_add_library(_gloo MODULE WITH_SOABI ${gloo_sources})
target_include_directories(_gloo PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
target_include_directories(_gloo SYSTEM PRIVATE "${GLOO_INCLUDE_DIR}")
target_link_libraries(_gloo PRIVATE rushlight_flags "${GLOO_LIBRARY}")
target_compile_options(_gloo PRIVATE -O3 -Wno-missing-field-initializers -Wno-cast-function-type)
# Gloo's own needs are found as it is: on the system, or beside it. DT_RPATH serves them too.
cmake_path(GET GLOO_LIBRARY PARENT_PATH gloo_dir)
set(gloo_path "${gloo_dir};${gloo_dir}/${CMAKE_LIBRARY_ARCHITECTURE}")
if(RUSHLIGHT_DEBIAN_ROOT)
  list(APPEND gloo_path "${RUSHLIGHT_DEBIAN_ROOT}/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
endif()
target_link_options(_gloo PRIVATE -Wl,--disable-new-dtags -Wl,--allow-shlib-undefined)
set_target_properties(_gloo PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}" BUILD_RPATH "${gloo_path}" INSTALL_RPATH "${gloo_path}")
install(TARGETS _gloo LIBRARY DESTINATION rushlight)

# A wheel that is repaired holds copies of these libraries, and so their licences.
foreach(doc "${unpacked}/share/doc" /usr/share/doc)
  file(GLOB packages "${doc}/libgloo[0-9]*" "${doc}/libhiredis[0-9]*" "${doc}/libibverbs[0-9]*"
                     "${doc}/libnl-[0-9]*" "${doc}/libnl-route-[0-9]*")
  list(FILTER packages EXCLUDE REGEX "-dev$")
  foreach(package ${packages})
    if(EXISTS "${package}/copyright")
      cmake_path(GET package FILENAME name)
      install(FILES "${package}/copyright" DESTINATION rushlight/lib/licenses RENAME "${name}.txt")
    endif()
  endforeach()
endforeach()
