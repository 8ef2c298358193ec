#pragma once
// A Pipeline has minibatches ready in memory before the step needs them.
//
// Reader threads fill a ring of slots in the order of a BatchOrder. They work in chunks of a few
// samples (tens of microseconds): several threads share one batch, and a thread that takes a core
// from a computing thread gives it back soon. The contents of a batch do not depend on the
// number of threads.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/pipeline/batch_order.h"
#include "tutti/data/transform/sample_writer.h"

namespace tutti::data {

/// Memory of one minibatch: desc(i).bytes() bytes for each tensor i of the SampleWriter.
using Slot = std::vector<void*>;

struct Batch {
  Slot tensors;  ///< the SampleWriter's tensors; samples beyond id.count are from earlier batches
  BatchId id;
};

struct PipelineSpec {
  int threads = 1;  ///< 0: next() reads inline
  int slots = 3;    ///< ring size if the Pipeline owns the memory; includes the slot in use
  std::vector<Slot> memory{};    ///< slots owned by the caller, for example a plan's input buffers;
                                 ///< replaces `slots`
  int chunk = 16;                ///< samples a reader thread takes at a time
  double timeout_seconds = 600;  ///< next() then throws IoError (a hanging file system); the
                                 ///< destructor waits no longer either
};

/// One consumer thread calls next(); the reader threads are internal. Dataset and SampleWriter must
/// outlive the Pipeline.
///
/// A reader that hangs inside Dataset::read() cannot be stopped. So that a time-out ends the
/// program with its message, the destructor leaves such a reader behind: when read() returns at
/// last, the thread touches only what it owns, and ends. For this, read() must not use the data set
/// after the call that may hang.
class Pipeline {
 public:
  /// Zeroes all slots (so a layout's padding is zero) and starts reading. CHECKs that there is at
  /// least 1 slot, and 2 when threads > 0.
  Pipeline(const Dataset& dataset, const SampleWriter& writer, std::unique_ptr<BatchOrder> order,
           const PipelineSpec& spec);
  /// Stops the readers at their next sample and joins them, except those that hang.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Returns the next batch of the order and releases the previous one, which must not be in use
  /// any more. Rethrows a reader's exception. Must not be called more than remaining() times.
  const Batch& next();
  /// Tells the readers that the order has more batches than before.
  void look_again();
  int64_t remaining() const { return order_->batches() - given_; }

  /// Seconds that next() spent waiting (or reading, without threads): for the last batch, and in
  /// total.
  double last_wait_seconds() const { return last_wait_; }
  double total_wait_seconds() const { return total_wait_; }
  int readers() const { return spec_.threads; }
  /// Returns the processor seconds that all readers have spent reading (decoding, transforms) so
  /// far.
  double reading_seconds() const { return static_cast<double>(reading_ns_) * 1e-9; }

 private:
  struct SlotState {
    Batch batch;
    int64_t unfinished_chunks = 0;
    bool ready = false;
  };
  struct Chunk {
    int64_t batch = 0;  // its number in the order
    int64_t first = 0;
    int64_t count = 0;
  };

  /// The state that a reader thread owns.
  struct Reader {
    enum State { kWorking, kReading, kLeftBehind, kEnded };
    std::atomic<int> state = kWorking;  // kReading: inside Dataset::read(), with `sample`
    Sample sample;
    std::vector<FieldRows> rows;
    std::thread thread;
  };

  SlotState& slot_of(int64_t k) { return slots_[static_cast<size_t>(k) % slots_.size()]; }
  void own_memory(int slots);
  bool claimable() const;
  Chunk claim();
  bool fill(const Chunk& chunk, Reader& reader);
  void finish(const Chunk& chunk);
  void read_until_stopped(Reader& reader);
  void end_or_leave_behind(Reader& reader);
  double await(int64_t k);  ///< returns the seconds waited, except while this process was stopped

  const Dataset& dataset_;
  const SampleWriter& writer_;
  std::unique_ptr<BatchOrder> order_;
  PipelineSpec spec_;
  struct alignas(64) CacheLine {
    std::byte bytes[64];
  };
  std::vector<CacheLine> memory_;  // memory of the slots, where the Pipeline owns it
  std::vector<SlotState> slots_;
  Reader inline_reader_;
  double last_wait_ = 0, total_wait_ = 0;
  std::atomic<int64_t> reading_ns_ = 0;

  std::mutex mutex_;  // guards all below and SlotState; only the consumer writes given_
  std::condition_variable space_, filled_;
  int64_t given_ = 0;     // batches returned by next()
  int64_t released_ = 0;  // batches handed back
  Chunk claimed_;         // where the next claim starts
  std::atomic<bool> stop_ = false;
  bool timed_out_ = false;
  std::exception_ptr failure_;
  // Shared with the thread, which may be left behind. Last member: the threads end before anything
  // that they use is destroyed.
  std::vector<std::shared_ptr<Reader>> readers_;
};

}  // namespace tutti::data
