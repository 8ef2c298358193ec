#pragma once
// Bands: how a plan walks the batch. A band is a sequence of nodes that can go through the batch
// together, tile by tile: no node of it reads a value that is reduced over the samples in the same
// band. A barrier stands between bands. For a residual network in training each convolution layer
// is one band forward (normalise, convolve, gather statistics) and one backward, and most of what
// flows inside a band never leaves the core's cache.

#include <span>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti::plan {

struct Band {
  std::vector<int> nodes;   ///< in execution order
  bool whole = false;       ///< a single node without batch
  int64_t samples = 0;      ///< samples that it walks over (slabs count as samples); 0 if whole
  std::vector<int> starts;  ///< exchanges whose inputs are complete at its end
  std::vector<int> waits;   ///< exchanges whose outputs it reads first
  int repeats = -1;         ///< the band whose nodes this one computes again; -1: none
};

struct Schedule {
  std::vector<Band> bands;        ///< forward and backward: once per local replica
  std::vector<int> begins;        ///< exchanges without inputs: under way before the first band
  std::vector<int> waits_at_end;  ///< exchanges whose outputs no band reads: complete at the end
  std::vector<int> updates;  ///< nodes of the update (Op::in_update), its exchanges included, in
                             ///< graph order: once per step
  std::vector<int> band_of;  ///< per node: its band; -1 for updates and exchanges
  std::vector<int> order;    ///< per node: its position in execution order, the first one if it is
                             ///< computed again; an exchange with outputs has the position of the
                             ///< last node of the band that waits for it
};

Schedule make_schedule(const graph::Graph& graph);

/// Nodes of band `of`, in their order, that are computed again just before band `before`.
struct BandAgain {
  int before = 0, of = 0;
  std::vector<int> nodes;
};

/// Returns the schedule with additional bands that compute something again, in the order of
/// `again`. REQUIRES: `again` is sorted by `before`; `of` is no repetition itself.
Schedule with_bands_again(const Schedule& schedule, std::span<const BandAgain> again);

}  // namespace tutti::plan
