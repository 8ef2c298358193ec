#pragma once
// Deadline: the time-out of the few MPI calls that block and have no other form (making, freeing
// and ending). On expiry it prints a report and ends this process with exit code 1, upon which the
// launcher ends the others.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tutti::comm {

class Deadline {
 public:
  /// `what` begins the report: "rank 2/4 on n03: making group 'data 0'". Runs until the destructor.
  Deadline(std::string what, double seconds);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread watch_;
};

}  // namespace tutti::comm
