#include "cpu/onednn_api.h"

#ifdef RUSHLIGHT_WITH_ONEDNN
#include "core/error.h"
#include "core/host/library.h"

namespace rushlight::cpu {

void* onednn_symbol(const char* name) {
  // Never closed: threads may be running its code when the process ends.
  static void* const library = [] {
    // This library's path leads to libdnnl, but not on to what libdnnl needs: that has to be there before.
    for (const char* needed : {"libintlc.so.5", "libimf.so"}) host::load_library(needed);
    std::string failure;
    void* opened = host::load_library("libdnnl.so.3", &failure);
    RL_CHECK(opened, "oneDNN, which comes with this package, cannot be loaded: ", failure);
    return opened;
  }();
  void* const found = host::find_symbol(library, name);
  RL_CHECK(found, "oneDNN lacks the function ", name);
  return found;
}

}  // namespace rushlight::cpu
#endif
