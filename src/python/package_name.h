// The name under which Python sees the package: `rushlight`, or `torch` while the alias is on.
#pragma once
#include <string>

namespace rushlight::python {

const std::string& package_name();

}  // namespace rushlight::python
