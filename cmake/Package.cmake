# Where the libraries go: into the wheel (with the third-party libraries they need), or beside the Python sources.
# DT_RPATH rather than DT_RUNPATH, because it also serves the needs of libdnnl, which has no path of its own.
elf_link_options(rushlight PRIVATE -Wl,--disable-new-dtags)

get_property(bundled GLOBAL PROPERTY RUSHLIGHT_BUNDLED)
set(bundled_dirs)
foreach(path ${bundled})
  cmake_path(GET path PARENT_PATH dir)
  list(APPEND bundled_dirs "${dir}")
endforeach()
list(REMOVE_DUPLICATES bundled_dirs)

set_target_properties(rushlight PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}/lib" BUILD_RPATH "${ORIGIN};${bundled_dirs}" INSTALL_RPATH "${ORIGIN}")
install(TARGETS rushlight LIBRARY DESTINATION rushlight/lib)

if(TARGET _C)
  set_target_properties(_C PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}" BUILD_RPATH "${ORIGIN}/lib" INSTALL_RPATH "${ORIGIN}/lib")
  install(TARGETS _C LIBRARY DESTINATION rushlight)
endif()

# The headers that extensions are compiled against.
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/include/" DESTINATION rushlight/include FILES_MATCHING PATTERN "*.h")
foreach(folder core dispatch ops)
  install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/src/${folder}" DESTINATION rushlight/include
    FILES_MATCHING PATTERN "*.h")
endforeach()

# What find_package(Rushlight) and pkg-config read comes with the Python package; elsewhere CMake looks for it under lib.
if(NOT SKBUILD)
  install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/rushlight/share" DESTINATION rushlight)
  foreach(name Rushlight Torch)
    set(forwarder "${CMAKE_CURRENT_BINARY_DIR}/forward/${name}Config.cmake")
    file(WRITE "${forwarder}"
      "include(\"\${CMAKE_CURRENT_LIST_DIR}/../../../rushlight/share/cmake/${name}/${name}Config.cmake\")\n")
    install(FILES "${forwarder}" DESTINATION lib/cmake/${name})
  endforeach()
endif()

# The same objects as an archive: `ninja rushlight_static`, or with everything where it is asked for.
option(RUSHLIGHT_STATIC "Build and install librushlight_static.a too" OFF)
set(static_objects $<TARGET_OBJECTS:rushlight> $<TARGET_OBJECTS:rushlight_ops> $<TARGET_OBJECTS:rushlight_frontend>)
foreach(isa ${isas})
  if(TARGET rushlight_${isa})
    list(APPEND static_objects $<TARGET_OBJECTS:rushlight_${isa}>)
  endif()
endforeach()
if(RUSHLIGHT_STATIC)
  add_library(rushlight_static STATIC ${static_objects})
  install(TARGETS rushlight_static ARCHIVE DESTINATION rushlight/lib)
else()
  add_library(rushlight_static STATIC EXCLUDE_FROM_ALL ${static_objects})
endif()
target_link_libraries(rushlight_static PUBLIC rushlight_deps ${loaded_when_used})
set_target_properties(rushlight_static PROPERTIES ARCHIVE_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}/lib")

# Wheels hold no links, so each library is installed once, under the name the loader asks for, without debug symbols.
foreach(path ${bundled})
  cmake_path(GET path FILENAME name)
  install(FILES "${path}" DESTINATION rushlight/lib)
  if(CMAKE_STRIP)
    install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-unneeded
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/rushlight/lib/${name}\" COMMAND_ERROR_IS_FATAL ANY)")
  endif()
endforeach()
