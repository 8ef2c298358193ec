#pragma once
// TensorQueue: copies tensors for a thread that writes them to files, so that their owner can go on
// to change them.
//
//   arriving = queue.begin(limit, {weights, state})   in the order of the files
//   writing thread: write_safetensors(path, arriving[0]), ...
//   owner: queue.put(weights); queue.put(state); and goes on
//
// The copies wait in a ring of memory that is kept for the next time. If it has space for all of
// them, put() takes as long as the copying; otherwise as long as the thread writes what has no
// space.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/keep/named_tensor.h"

namespace tutti::keep {

/// For one thread that puts and one that takes.
class TensorQueue {
 public:
  /// Copies with `threads` threads.
  explicit TensorQueue(int threads) : threads_(threads) {}
  TensorQueue(const TensorQueue&) = delete;
  TensorQueue& operator=(const TensorQueue&) = delete;

  /// Begins to pass on the tensors of some files, in this order. Returns the same names and shapes,
  /// whose content is taken from the queue (TensorRef::give); they refer to the queue. What is put
  /// must outlive the taking. Allocates `limit` bytes, or less if all have space in
  /// less, or more if one tensor that is made (TensorRef::make) needs more. Throws DeviceError if
  /// the system has no memory. Everything of the time before must have been taken, or abandoned.
  std::vector<std::vector<TensorRef>> begin(size_t limit,
                                            const std::vector<std::vector<TensorRef>>& files);
  /// Copies a file's tensors. Waits for space as long as needed.
  void put(std::span<const TensorRef> tensors);
  /// Abandons the copies: the thread that takes them gets an IoError, and later ones are dropped.
  void abandon();

  /// Returns the bytes of copies that wait, at most, for some files: begin()'s `limit` for all.
  static size_t bytes_of(const std::vector<std::vector<TensorRef>>& files);
  size_t memory_bytes() const { return memory_.bytes(); }
  /// Returns whether put() does not wait for the other thread.
  bool has_space_for_all() const { return has_space_for_all_; }

 private:
  /// A tensor's sources, or a piece of its content.
  struct Item {
    const TensorRef* tensor = nullptr;
    size_t begin = 0, bytes = 0;  // in memory_, which it fills up to an aligned end
    bool last = false;            // the tensor's last
  };
  struct Copy {
    std::byte* to;
    std::span<const std::byte> from;
  };

  void put(const TensorRef& tensor);
  /// Adds a copy of `from` to the tensor's items.
  void add(const TensorRef& tensor, std::span<const std::byte> from, bool last);
  /// Returns the place of an item of `bytes`, or waits for one.
  std::byte* place(const TensorRef& tensor, size_t bytes, bool last);
  /// Makes the copies that are due, and lets the other thread take them.
  void flush();
  bool has_space(size_t bytes) const;  // with mutex_
  Item next();
  void release(const Item& item);
  /// Passes the next tensor's content to `sink`.
  void take(const ByteSink& sink);

  const int threads_;
  device::Buffer memory_;
  size_t capacity_ = 0, piece_ = 0;
  bool has_space_for_all_ = true;
  std::vector<Copy> copies_;  // due
  std::vector<Item> placed_;  // their items
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> waiting_;    // copied, not taken
  size_t head_ = 0, tail_ = 0;  // used memory: [head_, tail_), or around the end
  size_t used_ = 0;             // items in memory
  bool abandoned_ = false;
  std::vector<std::byte> made_;  // used by the taking thread
};

}  // namespace tutti::keep
