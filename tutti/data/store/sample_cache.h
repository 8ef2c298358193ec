#pragma once
// CachedSet: a data set whose samples are read from files once and then kept near: in the node's
// memory, and what does not fit there in a file on its own disk.
//
// What is kept are samples as the data set gives them, decoded and before the steps of
// data.transforms, since chance makes others of these every time. It is filled once and keeps what
// it has: every sample comes once an epoch, so the one used last is the one that is needed last,
// and throwing it out would leave a cache that is too small without any hits at all.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "tutti/data/dataset.h"
#include "tutti/data/store/read_counts.h"

namespace tutti::data {

struct CacheSpec {
  /// Alike on the ranks of a node, and unlike any other node's and job's: nodes may share `folder`.
  std::string name;
  int64_t memory_bytes = 0;        ///< of the node
  int64_t disk_bytes = 0;          ///< likewise; 0: no file
  std::filesystem::path folder{};  ///< that the file lies in
};

class CachedSet final : public Dataset {
 public:
  /// IoError where memory or disk are not there: all of it is reserved now. ConfigError where a
  /// field is coded: its samples differ in size.
  CachedSet(std::shared_ptr<const Dataset> all, const CacheSpec& spec,
            std::shared_ptr<ReadCounts> counts);
  ~CachedSet() override;
  /// Once all ranks of the node have opened it, or one of them could not: nothing stays behind
  /// then, however they end.
  void remove_names() const;

  int64_t size() const override;
  const std::vector<Field>& fields() const override;
  void read(int64_t index, Sample& sample) const override;
  void read_rows(int64_t index, Sample& sample, std::span<const FieldRows> rows) const override;

  /// Samples that fit into memory, and into memory and file together.
  int64_t memory_samples() const;
  int64_t samples() const;

  /// Bytes that a sample of these fields takes.
  static int64_t slot_bytes(const std::vector<Field>& fields);

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with readers that may be left behind
};

}  // namespace tutti::data
