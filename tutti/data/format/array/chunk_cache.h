#pragma once
// A ChunkCache keeps the chunks of HDF5 files that were inflated last, for readers that take a
// part of each.

#include <compare>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace tutti::data {

/// Keeps the chunks used last, at most `most` bytes, or a single larger one. Usable from any
/// thread.
class ChunkCache {
 public:
  struct Key {
    uint64_t table = 0;  ///< ChunkTable::id
    int64_t number = 0;
    auto operator<=>(const Key&) const = default;
  };
  /// A sole owner may change the bytes.
  using Bytes = std::shared_ptr<std::vector<uint8_t>>;

  explicit ChunkCache(int64_t most) : most_(most) {}

  Bytes find(const Key& key);  ///< null: not cached
  void keep(const Key& key, Bytes chunk);
  int64_t bytes() const;

 private:
  struct Entry {
    Key key;
    Bytes chunk;
  };

  mutable std::mutex mutex_;  // guards all below
  int64_t most_, bytes_ = 0;
  std::list<Entry> entries_;  // the entry used last comes first
  std::map<Key, std::list<Entry>::iterator> places_;
};

}  // namespace tutti::data
