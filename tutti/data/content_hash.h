#pragma once
// ContentHash computes XXH64 (seed 0) of content that comes piece by piece.

#include <xxhash.h>

#include <memory>
#include <span>

namespace tutti::data {

class ContentHash {
 public:
  ContentHash() : state_(XXH64_createState(), XXH64_freeState) { XXH64_reset(state_.get(), 0); }
  void add(const auto& piece) {
    const std::span values(piece);
    XXH64_update(state_.get(), values.data(), values.size_bytes());
  }
  uint64_t value() const { return XXH64_digest(state_.get()); }

 private:
  std::unique_ptr<XXH64_state_t, XXH_errorcode (*)(XXH64_state_t*)> state_;
};

}  // namespace tutti::data
