#pragma once
// TuttiWork: the result of a process group's call: one plan or several under way, and the tensors
// that they read and write.
//
// A complete work has released its plans. The thread that waits for the work progresses it, or else
// the progress thread; moving_ excludes one while the other does.

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "plan_cache.h"

namespace tutti_torch {

class TuttiWork final : public c10d::Work {
 public:
  struct Options {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    const char* title = nullptr;          ///< name in PyTorch's profiler
    std::vector<at::Tensor> inputs = {};  ///< for the profiler
    std::chrono::milliseconds timeout{};  ///< for waits without their own; 0 or less: the group's
    uint64_t sequence = 0;
  };
  TuttiWork(std::shared_ptr<Group> group, const Options& options);

  // For the call that makes it, before any other thread knows it.
  /// Starts a plan, whose user this work becomes. The plan has its buffers already or none, or uses
  /// the given ones.
  void start(std::shared_ptr<Slot> slot);
  void start(std::shared_ptr<Slot> slot, const void* input, void* output);
  /// Requires that a message brings so many bytes.
  void expect(size_t bytes) {
    moving_plans_.back().bytes = bytes, moving_plans_.back().receives = true;
  }
  /// Keeps a tensor until the work is complete.
  void keep(at::Tensor x) { kept_.push_back(std::move(x)); }
  /// Adds an action for when the plans are complete; the thread that finds them so runs all in this
  /// order.
  void afterwards(std::function<void()> action) { afterwards_.push_back(std::move(action)); }
  void set_result(std::vector<at::Tensor> result) { result_ = std::move(result); }

  /// Progresses the work as long as other ranks do so, too, waiting for them up to `patience`.
  /// Returns whether it is complete or has failed; otherwise the progress thread continues with it.
  bool advance_with_peers(std::chrono::microseconds patience);

  // For the progress thread:
  /// Progresses the work, unless a thread waits for it. Returns whether it is complete or has
  /// failed. Does not block, except 0.25 s every 2 s for long works, to check that peers live.
  bool advance();

  /// Returns also if the work has failed. A `limit` of 0 means the work's own.
  void wait_until_complete(std::chrono::milliseconds limit = {});

  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return sequence_; }
  std::chrono::milliseconds getTimeout() const override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Moving {
    std::shared_ptr<Slot> slot;
    bool done = false;
    bool receives = false;
    size_t bytes = 0;
  };
  // Call these with moving_ held.
  bool test();
  bool look();
  void expire();
  void complete(std::exception_ptr failure = nullptr);
  void check_message(const Moving& moving) const;

  std::shared_ptr<Group> group_;  // shared: works may outlive their process group
  std::chrono::milliseconds timeout_;
  uint64_t sequence_;
  Clock::time_point begun_ = Clock::now(), next_look_;
  std::timed_mutex moving_;
  std::atomic<int> waiting_ = 0;  // threads that wait, and so progress it
  std::atomic<bool> complete_ = false;
  std::vector<Moving> moving_plans_;
  std::vector<at::Tensor> kept_;
  std::vector<std::function<void()>> afterwards_;
  std::vector<at::Tensor> result_;
  std::mutex future_mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace tutti_torch
