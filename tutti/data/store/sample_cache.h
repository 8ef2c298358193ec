#pragma once
// A CachedSet is a data set whose samples are read from files once and then kept: in the node's
// memory, and, if they do not fit there, in a file on its own disk.
//
// Samples are kept as the data set gives them, before the random steps of data.transforms: decoded,
// except for coded images, which stay as they are. The cache is filled once and evicts nothing:
// every sample comes once an epoch, so the least recently used sample is the one needed next, and
// evicting it would leave a cache that is too small without any hits.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/store/packed_sample.h"
#include "tutti/data/store/read_counts.h"

namespace tutti::data {

/// Gives access to the caches of this set on other nodes. Calls may run on any number of threads.
class CachePeers {
 public:
  virtual ~CachePeers() = default;
  /// Node i % nodes() keeps sample i for all nodes; this node is node().
  virtual int nodes() const = 0;
  virtual int node() const = 0;
  /// Gets the packed sample from its node, which reads it from its files if necessary. False where
  /// that node has no space for it or does not answer: it must then be read from files here.
  virtual bool get(int64_t index, std::vector<std::byte>& packed) = 0;
};

struct CacheSpec {
  /// The same on all ranks of a node, and different from that of any other node or job: nodes may
  /// share `folder`.
  std::string name;
  int64_t memory_bytes = 0;        ///< bytes for the whole node
  int64_t disk_bytes = 0;          ///< bytes for the whole node; 0: no file
  std::filesystem::path folder{};  ///< folder of the cache file
  /// Null: every node reads for itself. Samples of other nodes are also kept here if each node has
  /// space for all samples; otherwise they are not, so that the nodes together keep as many as they
  /// can.
  std::shared_ptr<CachePeers> peers{};
};

class CachedSet final : public Dataset {
 public:
  /// IoError where memory or disk space is lacking. All of it is reserved now: as much as the
  /// samples need, or, for coded ones, whose sizes are unknown, all that is allowed.
  CachedSet(std::shared_ptr<const Dataset> all, const CacheSpec& spec,
            std::shared_ptr<ReadCounts> counts);
  ~CachedSet() override;
  /// Removes the names of memory and file, so that nothing is left behind however the ranks end.
  /// Call it once all ranks of the node have opened the cache, or one of them has failed.
  void remove_names() const;

  int64_t size() const override;
  const std::vector<Field>& fields() const override;
  std::vector<SamplesOfFile> files() const override;
  SampleOrigins origins() const override;
  void read(int64_t index, Sample& sample) const override;
  void read_rows(int64_t index, Sample& sample, std::span<const FieldRows> rows) const override;

  /// Packs the sample for another node, if it is kept here or can be. False where there is no
  /// space. Throws what reading it throws.
  bool serve(int64_t index, std::vector<std::byte>& packed) const;

  /// Return the bytes reserved for samples.
  int64_t memory_bytes() const;
  int64_t disk_bytes() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with readers that may be left behind
};

}  // namespace tutti::data
