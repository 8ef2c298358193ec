#pragma once
// Finds where a NaN or infinity first appears: in a gradient while it is made, and afterwards in a
// forward pass.

#include <span>
#include <string>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/base/shared_work.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/exchange/bucket.h"
#include "tutti/models/block/model.h"
#include "tutti/plan/plan.h"
#include "tutti/train/network/weights.h"

namespace tutti::train {

/// Returns whether none of the `count` numbers is a NaN or an infinity. Fast enough for every
/// gradient; may be called by any number of threads.
bool all_finite(const float* data, size_t count);

struct NonfiniteSearch {
  models::ModelSpec model;
  const Weights* weights = nullptr;
  int local_replica = 0;                  ///< index of the replica whose batch it is
  const std::byte* parameters = nullptr;  ///< the weights used, if they differ from `weights`
  std::vector<data::BatchField> batch;    ///< the training plan's
  std::span<void* const> tensors;         ///< the batch
  std::string layout;                     ///< the training plan's: determines the inputs' layouts
  double most_error = plan::PlanOptions{}.most_error;
};

/// Repeats the forward pass on the same batch, layer by layer with all results kept, and names the
/// first value that is not finite: "the field 'image' of sample 3", "parameter 'conv1.weight'",
/// "the output of layer 'layer1.0.conv1' for sample 3". Slow; for the message of a run that ends.
std::string first_nonfinite(const NonfiniteSearch& search, const backend::Backend& backend);

/// Returns the same as nonfinite_gradient() for a float of the arena that is known not to be
/// finite.
std::string nonfinite_gradient_at(const plan::Variables& variables, int64_t index);

/// Returns "the gradient of 'conv1.weight' is not finite (element 17 of 432)" for the first such
/// gradient of a bucket; empty when all are finite. `arena` is one replica's gradient arena. Called
/// for every bucket before it is summed with others: the sum would no longer show which replica
/// made it; and it costs little there, because the bucket has just been written and is in the
/// cache. Threads that wait take part through `work`.
std::string nonfinite_gradient(const plan::Variables& variables, const exchange::Bucket& bucket,
                               const float* arena, SharedWork& work);

}  // namespace tutti::train
