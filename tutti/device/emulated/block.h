#pragma once
// One block of a launch. Its threads are fibers of the calling thread, which change at barriers and
// exchanges alone, in an order that chance decides: a barrier that is missing shows as another
// result under another seed, and threads that do not all come as an error that names them.

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tutti/device/emulated/chance.h"
#include "tutti/device/emulated/fiber.h"
#include "tutti/device/emulated/thread_code.h"

namespace tutti::device {

/// Runs the blocks of launches, one after the other. All its memory is kept for the next ones.
class Block {
 public:
  static constexpr size_t kMostShared = size_t{48} << 10;

  /// Begins a launch, whose arguments live until its last block has run.
  void begin(const DeviceFunction& function, const void* arguments);
  /// Runs all threads of the block at thread_place. Throws DeviceError; then the launch is over.
  void run(Chance& chance);

  // Called by the threads:
  void meet(int line);
  void* shared(const void* site, size_t bytes);
  void exchange(const Exchange& exchange);

 private:
  enum class At : uint8_t { ready, barrier, exchange, ended };
  struct Thread {
    std::unique_ptr<Fiber> fiber = std::make_unique<Fiber>();
    At at = At::ended;
    int line = 0;  ///< the line of the code where it waits
    Exchange part;
  };
  struct Warp {
    unsigned ready = 0;    // threads that can run
    unsigned arrived = 0;  // lanes in an exchange, one bit each
    unsigned gone = 0;     // lanes that have ended or that the block does not have
  };
  struct Shared {
    const void* site;
    size_t bytes;
    std::unique_ptr<std::byte[]> memory;
  };

  static void run_thread(void* block) noexcept;
  /// Lets each thread of the warp that is ready run until it waits.
  void sweep(unsigned warp, Chance& chance);
  void wait_at(At at, int line);
  void set_ready(unsigned thread);
  /// Lets the threads go on if all of them have come; throws DeviceError otherwise.
  void open_barrier();
  /// Gives all lanes of the mask their values. All have come.
  void hand_over(unsigned warp, const Exchange& exchange);
  std::string waiting_text() const;
  [[noreturn]] void abandon(const std::exception_ptr& error);

  const EmulatedKernel* kernel_ = nullptr;
  const void* arguments_ = nullptr;
  unsigned count_ = 0;  // threads of the block
  unsigned now_ = 0;    // the one that runs
  unsigned left_ = 0;   // have not ended
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<unsigned> warp_order_, lane_order_;
  std::vector<Shared> shared_;
  std::exception_ptr error_;
};

}  // namespace tutti::device
