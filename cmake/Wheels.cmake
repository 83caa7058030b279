# Finds files that PyPI wheels installed: Intel's packages put them under <prefix>/lib and <prefix>/include, which
# differs between a virtual environment and pip's isolated build environment, so Python is asked where each one lies:
# the interpreter that is built for, unless RUSHLIGHT_WHEELS_PYTHON names another one.
set(RUSHLIGHT_WHEELS_PYTHON "" CACHE FILEPATH "The interpreter whose packages hold the libraries to link")
if(NOT RUSHLIGHT_WHEELS_PYTHON)
  set(RUSHLIGHT_WHEELS_PYTHON "${Python_EXECUTABLE}")
endif()

set(RUSHLIGHT_WHEELS_PATH "" CACHE PATH "A folder of packages to look into first, for another processor than this one")

# wheel_file(<out> <distribution> <name>): absolute path of the file of <distribution> whose path ends in /<name>.
function(wheel_file out distribution name)
  execute_process(
    COMMAND "${RUSHLIGHT_WHEELS_PYTHON}" -c "
import importlib.metadata as metadata, sys
if sys.argv[3]: sys.path.insert(0, sys.argv[3])
try:
    files = metadata.files(sys.argv[1]) or []
except metadata.PackageNotFoundError:
    sys.exit('the package %s is not installed' % sys.argv[1])
for file in files:
    if str(file).endswith('/' + sys.argv[2]):
        print(file.locate().resolve()); break
else:
    sys.exit('the package %s has no file %s' % tuple(sys.argv[1:3]))
" "${distribution}" "${name}" "${RUSHLIGHT_WHEELS_PATH}"
    OUTPUT_VARIABLE path ERROR_VARIABLE problem RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_STRIP_TRAILING_WHITESPACE)
  if(status)
    message(FATAL_ERROR "${problem}. `${RUSHLIGHT_WHEELS_PYTHON} -m pip install --group build` installs what the build needs; "
                        "-DRUSHLIGHT_BLAS=none -DRUSHLIGHT_ONEDNN=off -DRUSHLIGHT_TBB=off builds without it.")
  endif()
  set(${out} "${path}" PARENT_SCOPE)
endfunction()

# wheel_include(<out> <distribution> <header>): the folder to add to the include path so that <header> is found.
function(wheel_include out distribution header)
  wheel_file(path ${distribution} "include/${header}")
  string(REGEX REPLACE "/${header}$" "" path "${path}")
  set(${out} "${path}" PARENT_SCOPE)
endfunction()

# wheel_library(<target> <distribution> <file>): an imported shared library that also goes into our package.
function(wheel_library target distribution file)
  wheel_file(path ${distribution} "${file}")
  add_library(${target} SHARED IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${path}")
  set_property(GLOBAL APPEND PROPERTY RUSHLIGHT_BUNDLED "${path}")
  wheel_licence(${distribution})
endfunction()

# wheel_licence(<distribution>): our package carries parts of it, so it carries its licence too.
function(wheel_licence distribution)
  wheel_file(path ${distribution} LICENSE.txt)
  install(FILES "${path}" DESTINATION rushlight/lib/licenses RENAME "${distribution}.txt")
endfunction()
