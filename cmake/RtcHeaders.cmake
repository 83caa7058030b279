# Writes the headers that kernels made at run time include as one C++ file. Called as a script:
#   cmake -DOUTPUT=... -DSOURCE=.../src -P RtcHeaders.cmake
set(headers cuda/fused_kernel.h formulas/activation_math.h formulas/bessel_math.h formulas/elementary.h
  formulas/incomplete_gamma.h formulas/library_math.h formulas/math.h formulas/parts.h formulas/polynomial_math.h
  formulas/special_float.h formulas/special_math.h)
# What those include besides; see cuda/rtc/standard.h.
set(standard bit cmath complex concepts cstdint initializer_list limits math.h type_traits core/dtype.h)

set(text "// Printed by cmake/RtcHeaders.cmake.\n#include \"cuda/nvrtc.h\"\n\nnamespace rushlight::cuda {\n\n")
file(READ "${SOURCE}/cuda/rtc/standard.h" content)
string(APPEND text "static const char standard[] = R\"rtc(${content})rtc\";\n\nconst SourceHeader source_headers[] = {\n")
set(count 0)
foreach(name IN LISTS standard)
  string(APPEND text "    {\"${name}\", standard},\n")
  math(EXPR count "${count} + 1")
endforeach()
foreach(name IN LISTS headers)
  file(READ "${SOURCE}/${name}" content)
  string(APPEND text "    {\"${name}\", R\"rtc(${content})rtc\"},\n")
  math(EXPR count "${count} + 1")
endforeach()
string(APPEND text "};\nconst int source_header_count = ${count};\n\n}  // namespace rushlight::cuda\n")
file(WRITE "${OUTPUT}" "${text}")
