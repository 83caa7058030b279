#include "dispatch/warning.h"

#include "dispatch/op.h"

namespace rushlight {

void OnceWarning::show() {
  if (warns_now(shown_)) show_warning(text_);
}

}  // namespace rushlight
