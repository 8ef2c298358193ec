#pragma once
// Common code of the files that call oneDNN. Private to onednn*.cpp.

#include <omp.h>

#include "tutti/backend/cpu/onednn/onednn.h"

namespace tutti::backend::onednn {

void check(dnnl_status_t status, const char* call);
#define TUTTI_DNNL(call) ::tutti::backend::onednn::check(call, #call)

/// oneDNN fixes the thread count of a primitive when it is created, and some loops ask again when
/// they run.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;

 private:
  int before_;
};

dnnl_engine_t cpu();

}  // namespace tutti::backend::onednn
