#include "tutti/keep/tensor_queue.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/stream_copy.h"

namespace tutti::keep {
namespace {

constexpr size_t kMostPiece = size_t{64} << 20, kLeastPiece = size_t{64} << 10;
constexpr size_t kCopyPart = size_t{2} << 20;  // bytes that a thread copies at a time

size_t aligned(size_t bytes) {
  return (bytes + device::Buffer::kAlignment - 1) / device::Buffer::kAlignment *
         device::Buffer::kAlignment;
}

size_t source_bytes(const TensorRef& tensor) {
  size_t bytes = 0;
  for (const auto& source : tensor.sources) bytes += aligned(source.size());
  return bytes;
}

}  // namespace

size_t TensorQueue::bytes_of(const std::vector<std::vector<TensorRef>>& files) {
  size_t bytes = 0;
  for (const std::vector<TensorRef>& file : files)
    for (const TensorRef& tensor : file)
      bytes += tensor.make ? source_bytes(tensor) : aligned(tensor.desc.bytes());
  return bytes;
}

std::vector<std::vector<TensorRef>> TensorQueue::begin(
    size_t limit, const std::vector<std::vector<TensorRef>>& files) {
  CHECK(abandoned_ || (waiting_.empty() && used_ == 0), "{} copies wait", waiting_.size());
  std::vector<std::vector<TensorRef>> arriving;
  size_t least = kLeastPiece;
  for (const std::vector<TensorRef>& file : files) {
    std::vector<TensorRef>& same = arriving.emplace_back();
    for (const TensorRef& tensor : file) {
      if (tensor.make) least = std::max(least, source_bytes(tensor));
      same.push_back({.name = tensor.name, .desc = tensor.desc});
      same.back().give = [this](const ByteSink& sink) { take(sink); };
    }
  }
  const size_t all = bytes_of(files);
  capacity_ = std::max(aligned(std::min(limit, all)), least);
  has_space_for_all_ = all <= capacity_;
  if (memory_.bytes() < capacity_) {
    memory_ = device::Buffer();  // first return the old one
    memory_ = device::Buffer(capacity_);
  }
  piece_ = std::clamp(capacity_ / 4 / device::Buffer::kAlignment * device::Buffer::kAlignment,
                      kLeastPiece / 4, kMostPiece);
  copies_.clear();
  placed_.clear();
  waiting_.clear();
  head_ = tail_ = used_ = 0;
  abandoned_ = false;
  return arriving;
}

void TensorQueue::put(std::span<const TensorRef> tensors) {
  for (const TensorRef& tensor : tensors) put(tensor);
  flush();
}

void TensorQueue::put(const TensorRef& tensor) {
  if (tensor.make) {
    std::byte* to = place(tensor, source_bytes(tensor), true);
    for (const auto& source : tensor.sources) {
      if (to) copies_.push_back({to, source});
      if (to) to += aligned(source.size());
    }
    return;
  }
  if (!tensor.give) return add(tensor, tensor.bytes, true);
  tensor.give([&](std::span<const std::byte> piece) {
    add(tensor, piece, false);
    flush();  // the piece is valid until here
  });
  place(tensor, 0, true);
}

void TensorQueue::add(const TensorRef& tensor, std::span<const std::byte> from, bool last) {
  do {
    const std::span<const std::byte> piece = from.first(std::min(from.size(), piece_));
    from = from.subspan(piece.size());
    if (std::byte* const to = place(tensor, piece.size(), last && from.empty()))
      copies_.push_back({to, piece});
  } while (!from.empty());
}

/// An empty ring begins at 0. An item lies in one piece, so the end of the memory may stay unused.
bool TensorQueue::has_space(size_t bytes) const {
  if (used_ == 0) return true;
  if (tail_ > head_) return capacity_ - tail_ >= bytes || head_ >= bytes;
  return head_ - tail_ >= bytes;
}

std::byte* TensorQueue::place(const TensorRef& tensor, size_t bytes, bool last) {
  const size_t extent = aligned(bytes);
  std::unique_lock lock(mutex_);
  if (!abandoned_ && !has_space(extent)) {
    lock.unlock();
    flush();
    lock.lock();
    changed_.wait(lock, [&] { return abandoned_ || has_space(extent); });
  }
  if (abandoned_) return nullptr;
  if (used_ == 0) head_ = tail_ = 0;
  const bool wraps = tail_ >= head_ && capacity_ - tail_ < extent;
  const size_t begin = wraps ? 0 : tail_;
  tail_ = begin + extent;
  ++used_;
  placed_.push_back({&tensor, begin, bytes, last});
  return memory_.data() + begin;
}

void TensorQueue::flush() {
  std::vector<Copy> parts;
  for (const Copy& copy : copies_)
    for (size_t at = 0; at < copy.from.size(); at += kCopyPart)
      parts.push_back(
          {copy.to + at, copy.from.subspan(at, std::min(kCopyPart, copy.from.size() - at))});
#pragma omp parallel for num_threads(threads_) schedule(dynamic) if (parts.size() > 1)
  for (size_t p = 0; p < parts.size(); ++p)
    stream_copy(parts[p].to, parts[p].from.data(), parts[p].from.size());
  copies_.clear();
  const std::lock_guard lock(mutex_);
  if (!abandoned_) waiting_.insert(waiting_.end(), placed_.begin(), placed_.end());
  placed_.clear();
  changed_.notify_all();
}

void TensorQueue::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  waiting_.clear();
  changed_.notify_all();
}

TensorQueue::Item TensorQueue::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return abandoned_ || !waiting_.empty(); });
  if (abandoned_) throw IoError("the checkpoint was not finished");
  const Item item = waiting_.front();
  waiting_.pop_front();
  return item;
}

void TensorQueue::release(const Item& item) {
  const std::lock_guard lock(mutex_);
  head_ = item.begin + aligned(item.bytes);
  --used_;
  changed_.notify_all();
}

void TensorQueue::take(const ByteSink& sink) {
  for (bool last = false; !last;) {
    const Item item = next();
    last = item.last;
    const std::span<const std::byte> content(memory_.data() + item.begin, item.bytes);
    if (item.tensor->make) {
      std::vector<std::span<const std::byte>> sources;
      size_t at = 0;
      for (const auto& source : item.tensor->sources) {
        sources.push_back(content.subspan(at, source.size()));
        at += aligned(source.size());
      }
      made_.resize(item.tensor->desc.bytes());
      item.tensor->make(sources, made_);
      sink(made_);
    } else if (item.bytes > 0) {
      sink(content);
    }
    release(item);
  }
}

}  // namespace tutti::keep
