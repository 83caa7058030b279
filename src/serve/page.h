// The page at /, page.html as the build put it here.
#pragma once
#include <string_view>

namespace rushlight::serve {

extern const std::string_view kPage;

}  // namespace rushlight::serve
