#pragma once
// Group: the ranks of one process group, as a communicator of libtutticomm.

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "status.h"

namespace tutti_torch {

inline double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

class Group {
 public:
  struct Options {
    c10::intrusive_ptr<c10d::Store> store;  ///< for this group only, as c10d passes it
    int rank = 0;
    int size = 1;
    std::chrono::milliseconds timeout{};  ///< for every wait
  };
  /// Collective. Connects every two ranks.
  explicit Group(const Options& options);
  /// Not collective. All plans must be gone.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  tutti_comm* comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  void set_timeout(std::chrono::milliseconds timeout);
  /// Call this after communication has failed: the group cannot be used any more.
  void give_up() { usable_ = false; }
  void check_usable() const {
    TORCH_CHECK_WITH(DistBackendError, usable_, "tutti: rank ", rank_,
                     ": an earlier call of this process group has failed: make a new one");
  }

 private:
  void meet();

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_, size_;
  std::atomic<std::chrono::milliseconds> timeout_;
  std::atomic<bool> usable_ = true;
  tutti_comm* comm_ = nullptr;
};

}  // namespace tutti_torch
