#include "tutti/comm/answer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tutti/comm/codec/fp16.h"
#include "tutti/comm/collective.h"
#include "tutti/tensor/dtype.h"

namespace tutti::comm {
namespace {

template <class T>
T read(const std::byte* data, size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void write(std::byte* data, size_t i, T value) {
  std::memcpy(data + i * sizeof(T), &value, sizeof(T));
}

}  // namespace

// -3 .. 3: nine ranks' sums stay inside every type.
int Answer::value(int rank, size_t i) const {
  uint64_t x = seed_ ^ (static_cast<uint64_t>(rank) << 40) ^ i;  // SplitMix64's finaliser
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<int>((x ^ (x >> 31)) % 7) - 3;
}

double Answer::load(const std::byte* data, size_t i) const {
  switch (element_) {
    case Element::f32: return static_cast<double>(read<float>(data, i));
    case Element::f64: return read<double>(data, i);
    case Element::bf16: return static_cast<double>(static_cast<float>(read<bf16>(data, i)));
    case Element::f16: return static_cast<double>(static_cast<float>(read<fp16>(data, i)));
    case Element::i8:
    case Element::byte: return read<int8_t>(data, i);
    case Element::i32: return read<int32_t>(data, i);
  }
  return 0;
}

void Answer::store(std::byte* data, size_t i, double value) const {
  switch (element_) {
    case Element::f32: return write(data, i, static_cast<float>(value));
    case Element::f64: return write(data, i, value);
    case Element::bf16: return write(data, i, bf16(static_cast<float>(value)));
    case Element::f16: return write(data, i, fp16(static_cast<float>(value)));
    case Element::i8:
    case Element::byte: return write(data, i, static_cast<int8_t>(value));
    case Element::i32: return write(data, i, static_cast<int32_t>(value));
  }
}

void Answer::fill(std::byte* input) const {
  const size_t count = extent_of(task_).input;
  for (size_t i = 0; i < count; ++i) store(input, i, value(task_.rank, i));
}

double Answer::reduced(size_t i) const {
  double result = value(0, i);
  for (int p = 1; p < task_.ranks; ++p) {
    const double x = value(p, i);
    if (op_ == ReduceOp::min)
      result = std::min(result, x);
    else if (op_ == ReduceOp::max)
      result = std::max(result, x);
    else
      result += x;
  }
  if (op_ != ReduceOp::mean) return result;
  const bool whole = element_ == Element::i8 || element_ == Element::i32;
  return whole ? std::trunc(result / task_.ranks) : result / task_.ranks;
}

double Answer::expected(size_t i) const {
  switch (task_.kind) {
    case Collective::broadcast: return value(task_.root, i);
    case Collective::reduce:
    case Collective::allreduce: return reduced(i);
    case Collective::reduce_scatter: return reduced(task_.part().begin + i);
    case Collective::scatter: return value(task_.root, task_.part().begin + i);
    case Collective::gather:
    case Collective::allgather: {
      // The last part that begins at or before i and is not empty.
      size_t owner = 0;
      while (task_.parts[owner].end() <= i) ++owner;
      return value(static_cast<int>(owner), i - task_.parts[owner].begin);
    }
    case Collective::all_to_all:
      for (int p = 0; p < task_.ranks; ++p) {
        const Slice& from = task_.receives[static_cast<size_t>(p)];
        // Equal blocks: mine lies at the same place in everyone's input.
        if (i >= from.begin && i < from.end()) return value(p, task_.sends[static_cast<size_t>(task_.rank)].begin + (i - from.begin));
      }
      return 0;
    case Collective::barrier: break;
  }
  return 0;
}

size_t Answer::count_wrong(const std::byte* output) const {
  // A mean may differ by the rounding of a division.
  const double tolerance = op_ == ReduceOp::mean && reduces(task_.kind) ? (size_of(element_) == 2 ? 1.0 / 64 : 1e-6) : 0;
  const size_t count = extent_of(task_).output;
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += std::abs(load(output, i) - expected(i)) <= tolerance ? 0 : 1;
  return wrong;
}

}  // namespace tutti::comm
