#include "job.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "status.h"

namespace tutti_torch {

int Job::progress_threads() {
  const char* const text = std::getenv("TUTTI_TORCH_PROGRESS_THREADS");
  if (text == nullptr || *text == 0) return 1;
  const std::string_view all = text;
  int threads = -1;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), threads);
  TORCH_CHECK_VALUE(error == std::errc() && end == all.data() + all.size() && threads >= 0,
                    "TUTTI_TORCH_PROGRESS_THREADS=", text, " is not a number of threads");
  return threads;
}

std::shared_ptr<Job> Job::share() {
  static std::mutex mutex;
  static std::weak_ptr<Job> current;
  const std::lock_guard lock(mutex);
  auto job = current.lock();
  if (!job) current = job = std::make_shared<Job>();
  return job;
}

Job::Job() {
  tutti_comm_store store{};
  store.size = sizeof store;
  store.context = this;
  store.set = [](void* context, const char* key, const void* value, size_t bytes) {
    Job& job = *static_cast<Job*>(context);
    const std::lock_guard lock(job.mutex_);
    job.values_[key].assign(static_cast<const char*>(value), bytes);
    return 0;
  };
  store.get = [](void* context, const char* key, void* value, size_t capacity, size_t* bytes,
                 double) {
    Job& job = *static_cast<Job*>(context);
    const std::lock_guard lock(job.mutex_);
    const auto at = job.values_.find(key);
    if (at == job.values_.end()) return 1;
    if (at->second.size() > capacity) return 2;
    std::memcpy(value, at->second.data(), at->second.size());
    *bytes = at->second.size();
    return 0;
  };
  tutti_comm_init_options options{};
  options.size = sizeof options;
  options.address = std::getenv("TUTTI_TORCH_ADDRESS");
  // The first thread is progress_thread.h's: it has to tell PyTorch what is complete, too.
  options.progress_threads = std::max(progress_threads() - 1, 0);
  check(tutti_comm_init_store(&store, 0, 1, "tutti_torch", &options));
}

Job::~Job() { tutti_comm_finalize(); }

}  // namespace tutti_torch
