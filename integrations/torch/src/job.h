#pragma once
// Job: that this process uses libtutticomm. A job of one rank; every process group joins its ranks
// with those of other processes in a group of its own, so that groups come and go in any order.

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace tutti_torch {

class Job {
 public:
  /// Begins it where this is the first group. Shared by all groups, and ends with the last of them.
  static std::shared_ptr<Job> share();
  Job();
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Of TUTTI_TORCH_PROGRESS_THREADS: 0 or more.
  static int progress_threads();

 private:
  std::mutex mutex_;                           // of values_
  std::map<std::string, std::string> values_;  // the store of one rank
};

}  // namespace tutti_torch
