#pragma once
// Finding where a NaN or infinity first appears: in a gradient as it is made, and after the fact in
// a forward pass.

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

namespace tutti {

/// Whether none of the `count` numbers is a NaN or an infinity. It is fast enough to be asked of
/// every gradient, and may be called by any number of threads.
bool all_finite(const float* data, size_t count);

struct NonfiniteSearch {
  ModelSpec model;
  const Weights* weights = nullptr;
  int local_replica = 0;  ///< of those, whose batch it is
  const std::byte* parameters =
      nullptr;                          ///< that it has used, where they are not those of `weights`
  std::vector<data::BatchField> batch;  ///< of the training plan
  std::span<void* const> tensors;       ///< the batch
  std::string layout;  ///< of the training plan: the inputs' layouts follow from it
  double most_error = PlanOptions{}.most_error;
};

/// Repeats the forward pass on the same batch, layer by layer with everything kept, and says what
/// is not finite first: "the field 'image' of sample 3", "parameter 'conv1.weight'", "the output of
/// layer 'layer1.0.conv1' for sample 3". Slow; for the message of a run that ends.
std::string first_nonfinite(const NonfiniteSearch& search, const Backend& backend);

/// "the gradient of 'conv1.weight' is not finite (element 17 of 432)" for the first such gradient
/// of a bucket; empty when all are finite. `arena` is one replica's gradient arena. Called for
/// every bucket before it is summed with others: then its maker is known, which a look at the sum
/// could no longer tell; and it costs little there, because the bucket has just been written and
/// lies in the cache.
/// Threads that wait take part through `work`.
std::string nonfinite_gradient(const Variables& variables, const Bucket& bucket, const float* arena,
                               SharedWork& work);

}  // namespace tutti
