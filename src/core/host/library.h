// Libraries that are loaded while the program runs, and names of symbols.
#pragma once
#include <string>

namespace rushlight::host {

/// Loads a library, or finds one that is loaded; nullptr where that fails. It is never unloaded, and its
/// names are seen through find_symbol alone. `failure`: out, what the system says.
void* load_library(const std::string& path, std::string* failure = nullptr);
/// nullptr where there is none.
void* find_symbol(void* library, const char* name);
/// The file name of a library of this package: "librushlight_cuda.so" for "rushlight_cuda".
std::string library_file(const std::string& name);
/// The folder, with its last slash, of the library or program that holds a function; "" where it is unknown.
std::string folder_of(const void* function);

/// A C++ name as programmers write it; the name itself where it is none.
std::string demangled(const char* name);

}  // namespace rushlight::host
