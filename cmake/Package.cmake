# Where the libraries go: into the wheel (with the third-party libraries they need), or beside the Python sources.
# DT_RPATH rather than DT_RUNPATH, because it also serves the needs of libdnnl, which has no path of its own.
target_link_options(rushlight PRIVATE -Wl,--disable-new-dtags)

get_property(bundled GLOBAL PROPERTY RUSHLIGHT_BUNDLED)
set(bundled_dirs)
foreach(path ${bundled})
  cmake_path(GET path PARENT_PATH dir)
  list(APPEND bundled_dirs "${dir}")
endforeach()
list(REMOVE_DUPLICATES bundled_dirs)

set_target_properties(rushlight PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}/lib" BUILD_RPATH "$ORIGIN;${bundled_dirs}" INSTALL_RPATH "$ORIGIN")
install(TARGETS rushlight LIBRARY DESTINATION rushlight/lib)

if(TARGET _C)
  set_target_properties(_C PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${RUSHLIGHT_PACKAGE_DIR}" BUILD_RPATH "$ORIGIN/lib" INSTALL_RPATH "$ORIGIN/lib")
  install(TARGETS _C LIBRARY DESTINATION rushlight)
endif()

# The headers that extensions are compiled against.
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/include/" DESTINATION rushlight/include FILES_MATCHING PATTERN "*.h")
foreach(folder core dispatch ops)
  install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/src/${folder}" DESTINATION rushlight/include
    FILES_MATCHING PATTERN "*.h")
endforeach()

# Wheels hold no links, so each library is installed once, under the name the loader asks for, without debug symbols.
foreach(path ${bundled})
  cmake_path(GET path FILENAME name)
  install(FILES "${path}" DESTINATION rushlight/lib)
  if(CMAKE_STRIP)
    install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-unneeded
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/rushlight/lib/${name}\" COMMAND_ERROR_IS_FATAL ANY)")
  endif()
endforeach()
