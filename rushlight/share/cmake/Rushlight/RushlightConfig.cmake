# find_package(Rushlight) gives the targets Rushlight::rushlight (shared) and, where they were built, Rushlight::static
# and Rushlight::runtime, which runs models of one file and nothing else.
# This file finds everything beside itself: in an installed package, and in the source tree that it was built in.
get_filename_component(_rushlight_package "${CMAKE_CURRENT_LIST_DIR}/../../.." REALPATH)
if(EXISTS "${_rushlight_package}/include/rushlight/rushlight.h")
  set(Rushlight_INCLUDE_DIRS "${_rushlight_package}/include")
else()
  get_filename_component(_rushlight_tree "${_rushlight_package}/.." REALPATH)
  set(Rushlight_INCLUDE_DIRS "${_rushlight_tree}/include" "${_rushlight_tree}/src"
    "${_rushlight_package}/include")
endif()
set(Rushlight_LIBRARY "${_rushlight_package}/lib/librushlight.so")
if(NOT EXISTS "${Rushlight_LIBRARY}")
  set(Rushlight_FOUND FALSE)
  set(Rushlight_NOT_FOUND_MESSAGE "${Rushlight_LIBRARY} is missing: build the package first (./dev build)")
  return()
endif()

if(NOT TARGET Rushlight::rushlight)
  add_library(Rushlight::rushlight SHARED IMPORTED)
  set_target_properties(Rushlight::rushlight PROPERTIES
    IMPORTED_LOCATION "${Rushlight_LIBRARY}" IMPORTED_SONAME librushlight.so
    INTERFACE_INCLUDE_DIRECTORIES "${Rushlight_INCLUDE_DIRS}" INTERFACE_COMPILE_FEATURES cxx_std_20
    # What librushlight itself needs lies beside it, where its own path leads.
    INTERFACE_LINK_OPTIONS "-Wl,--allow-shlib-undefined")
endif()
if(EXISTS "${_rushlight_package}/lib/librushlight_static.a" AND NOT TARGET Rushlight::static)
  find_package(Threads REQUIRED)
  add_library(Rushlight::static STATIC IMPORTED)
  file(GLOB _rushlight_needs "${_rushlight_package}/lib/*.so.*")
  set_target_properties(Rushlight::static PROPERTIES
    IMPORTED_LOCATION "${_rushlight_package}/lib/librushlight_static.a"
    INTERFACE_INCLUDE_DIRECTORIES "${Rushlight_INCLUDE_DIRS}" INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_LINK_LIBRARIES "${_rushlight_needs};Threads::Threads;${CMAKE_DL_LIBS}")
endif()
if(EXISTS "${_rushlight_package}/lib/librushlight_runtime.so" AND NOT TARGET Rushlight::runtime)
  add_library(Rushlight::runtime SHARED IMPORTED)
  set_target_properties(Rushlight::runtime PROPERTIES
    IMPORTED_LOCATION "${_rushlight_package}/lib/librushlight_runtime.so" IMPORTED_SONAME librushlight_runtime.so
    INTERFACE_INCLUDE_DIRECTORIES "${Rushlight_INCLUDE_DIRS}" INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_COMPILE_DEFINITIONS RUSHLIGHT_CORE INTERFACE_LINK_OPTIONS "-Wl,--allow-shlib-undefined")
endif()
set(Rushlight_LIBRARIES Rushlight::rushlight)
set(Rushlight_FOUND TRUE)
