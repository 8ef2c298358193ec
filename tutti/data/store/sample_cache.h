#pragma once
// CachedSet: a data set whose samples are read from files once and then kept near: in the node's
// memory, and what does not fit there in a file on its own disk.
//
// What is kept are samples as the data set gives them, before the steps of data.transforms, since
// chance makes others of these every time: decoded, but for coded images, which stay as they are.
// It is filled once and keeps what it has: every sample comes once an epoch, so the one used last
// is the one that is needed last, and throwing it out would leave a cache that is too small without
// any hits at all.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/store/packed_sample.h"
#include "tutti/data/store/read_counts.h"

namespace tutti::data {

/// The caches of this set on other nodes. Calls may run on any number of threads.
class CachePeers {
 public:
  virtual ~CachePeers() = default;
  /// Sample i is kept for all nodes by node i % nodes(), of which this one is node().
  virtual int nodes() const = 0;
  virtual int node() const = 0;
  /// The packed sample from its node, which reads it from its files if it has not yet. False where
  /// that node has no room for it or does not answer: it is then to be read from files here.
  virtual bool get(int64_t index, std::vector<std::byte>& packed) = 0;
};

struct CacheSpec {
  /// Alike on the ranks of a node, and unlike any other node's and job's: nodes may share `folder`.
  std::string name;
  int64_t memory_bytes = 0;        ///< of the node
  int64_t disk_bytes = 0;          ///< likewise; 0: no file
  std::filesystem::path folder{};  ///< that the file lies in
  /// Null: every node reads for itself. What comes from others is kept where all samples have room
  /// on each node, and otherwise left to them, so that the nodes together keep as much as they can.
  std::shared_ptr<CachePeers> peers{};
};

class CachedSet final : public Dataset {
 public:
  /// IoError where memory or disk are not there: all of it is reserved now, as much as the samples
  /// need, or of coded ones, whose sizes are not known, all that is allowed.
  CachedSet(std::shared_ptr<const Dataset> all, const CacheSpec& spec,
            std::shared_ptr<ReadCounts> counts);
  ~CachedSet() override;
  /// Once all ranks of the node have opened it, or one of them could not: nothing stays behind
  /// then, however they end.
  void remove_names() const;

  int64_t size() const override;
  const std::vector<Field>& fields() const override;
  std::vector<SamplesOfFile> files() const override;
  SampleOrigins origins() const override;
  void read(int64_t index, Sample& sample) const override;
  void read_rows(int64_t index, Sample& sample, std::span<const FieldRows> rows) const override;

  /// For another node: the sample, if it is kept here or can be, packed. False where there is no
  /// room. Throws what reading it throws.
  bool serve(int64_t index, std::vector<std::byte>& packed) const;

  /// Bytes that were reserved for samples.
  int64_t memory_bytes() const;
  int64_t disk_bytes() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with readers that may be left behind
};

}  // namespace tutti::data
