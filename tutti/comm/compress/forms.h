#pragma once
// The forms of a compressed exchange, one in each file. Only for the files of this folder; users
// call plan_compressed().

#include "tutti/comm/compress/compressed_reduction.h"

namespace tutti::comm {

struct Form {
  std::unique_ptr<CompressedReduction> (*make)(Communicator&, const CompressedReductionSpec&);
  StateLayout (*state)(const Communicator&, const CompressedReductionSpec&);
  size_t (*scratch)(const Communicator&, const CompressedReductionSpec&);
};
extern const Form two_phase_form, sparse_form, hierarchical_form, low_rank_form;

template <class Reduction>
std::unique_ptr<CompressedReduction> make_form(Communicator& communicator,
                                               const CompressedReductionSpec& spec) {
  return std::make_unique<Reduction>(communicator, spec);
}
inline size_t no_scratch(const Communicator&, const CompressedReductionSpec&) { return 0; }

}  // namespace tutti::comm
