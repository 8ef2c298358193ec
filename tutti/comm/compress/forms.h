#pragma once
// The forms of a compressed exchange, one in each file. Only for the files of this folder; users
// call plan_compressed().

#include "tutti/comm/compress/compressed_reduction.h"

namespace tutti::comm {

std::unique_ptr<CompressedReduction> make_two_phase(Communicator& communicator,
                                                    const CompressedReductionSpec& spec);
std::unique_ptr<CompressedReduction> make_sparse(Communicator& communicator,
                                                 const CompressedReductionSpec& spec);
std::unique_ptr<CompressedReduction> make_hierarchical(Communicator& communicator,
                                                       const CompressedReductionSpec& spec);
std::unique_ptr<CompressedReduction> make_low_rank(Communicator& communicator,
                                                   const CompressedReductionSpec& spec);

StateLayout two_phase_state(const Communicator& communicator, const CompressedReductionSpec& spec);
StateLayout sparse_state(const Communicator& communicator, const CompressedReductionSpec& spec);
StateLayout hierarchical_state(const Communicator& communicator,
                               const CompressedReductionSpec& spec);
StateLayout low_rank_state(const Communicator& communicator, const CompressedReductionSpec& spec);

size_t sparse_scratch(const Communicator& communicator, const CompressedReductionSpec& spec);
size_t hierarchical_scratch(const Communicator& communicator, const CompressedReductionSpec& spec);

}  // namespace tutti::comm
