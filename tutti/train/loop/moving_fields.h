#pragma once
// MovingFields: batches whose samples are fields of view that move over larger canvases, guided by
// the network's predictions (flood filling, Januszewski et al. 2018):
//
//   each place of a batch follows one seed. Its canvas holds the image, the mask to be learned and
//   the logits known so far, initially the seed's. The field of view starts in the middle; the
//   network's prediction replaces the logits there. Then the moves, (-d, 0, +d) along each axis,
//   are taken in one order that is the same for all seeds: the field of view goes to the next
//   move whose middle then has a probability of at least `threshold`. After the last one the next
//   seed takes the place.
//
// Every micro-batch of every replica has its own stream of seeds, from which its places take the
// next one in order. So batches depend only on the weights of all earlier steps, and not on the
// number of ranks. A checkpoint holds the position of each seed, and its logits.

#include <array>
#include <vector>

#include "tutti/data/pipeline/sampler.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/exchange/replicas.h"
#include "tutti/keep/rank_file.h"
#include "tutti/train/loop/batch_source.h"

namespace tutti::train {

/// Voxels along z, y and x.
using Move3 = std::array<int64_t, 3>;

struct MovingFieldsSpec {
  Move3 deltas{};
  double threshold = 0.9;
  uint64_t seed = 0;
  std::vector<int> node_of{};  ///< data::SamplerSpec
  std::string grown = "seed";  ///< the field that predictions replace
};

/// Returns the middle, then the moves, without repeats, in an order that is a function of the seed.
std::vector<Move3> shuffled_moves(const Move3& deltas, uint64_t seed);

/// Returns the fields of a canvas, parts of which become a batch's fields: f32, plain, one sample.
std::vector<data::BatchField> canvas_fields(const std::vector<data::BatchField>& batch,
                                            const data::Dataset& canvases);

class MovingFields final : public BatchSource {
 public:
  /// `batch` lists the network's inputs and targets, [N, 1, z, y, x] each; `canvases` has all of
  /// their fields, and `writer` fills canvas_fields(). `micro_batches` maps all replicas'
  /// micro-batches. `canvases` must outlive this object.
  MovingFields(MovingFieldsSpec spec, std::vector<data::BatchField> batch,
               const data::Dataset& canvases, data::SampleWriter writer,
               const exchange::ReplicaMap& micro_batches);

  /// Call one of these once, before anything else. All places take their first seeds, or those of a
  /// checkpoint whose micro-batches were on the ranks that `before` gives. Throws ConfigError if it
  /// has none.
  void begin();
  void restore(keep::RankFileReader& files, const exchange::ReplicaMap& before);

  const data::Batch& next() override;
  double last_wait_seconds() const override { return last_wait_; }
  void learn(const std::function<const float*()>& prediction) override { take(prediction()); }
  /// Takes the prediction for the last batch.
  void take(const float* y);
  /// Returns "seeds/canvas" [M, places, voxels], "seeds/place" [M, places, 4] and "seeds/taken"
  /// [M, 3] for M local micro-batches. A number below 2^48 is stored as three of 16 bits, the least
  /// significant first; the fourth number of a place is the move.
  std::vector<keep::NamedTensor> state() const override;

  /// The position of a local micro-batch's place: its seed's number in the stream, and its current
  /// move.
  struct Place {
    int64_t seed = 0;
    int move = 0;
    bool operator==(const Place&) const = default;
  };
  Place place(int local_micro_batch, int64_t at) const {
    return flights_[static_cast<size_t>(local_micro_batch)].seeds[static_cast<size_t>(at)].place;
  }
  const std::vector<Move3>& moves() const { return moves_; }

 private:
  struct Seed {
    Place place;
    std::vector<std::vector<float>> canvas;  // for each field of the batch
  };
  struct Flight {
    int64_t taken = 0;  // seeds taken from the stream
    std::vector<Seed> seeds;
  };

  void load(int local_micro_batch, Seed& seed);
  void take_next(int local_micro_batch, Seed& seed);
  /// Goes to the next move that the threshold allows; returns false after the last.
  bool advance(Seed& seed) const;
  int64_t corner(const Move3& move) const;
  void show(size_t tensor, const Seed& seed, int64_t position);
  Flight& flight() { return flights_[static_cast<size_t>(micro_batch_)]; }

  const MovingFieldsSpec spec_;
  const std::vector<data::BatchField> batch_;
  const data::Dataset& canvases_;
  const data::SampleWriter writer_;
  const exchange::ReplicaMap micro_batches_;
  const data::Sampler sampler_;  // samples single seeds
  const std::vector<Move3> moves_;
  Move3 view_{}, wide_{};
  int64_t places_ = 0;
  size_t grown_ = 0;                                        // index in batch_
  float threshold_;                                         // as a logit
  std::vector<std::array<std::vector<int64_t>, 5>> terms_;  // terms of each tensor's layout
  data::Sample sample_;
  std::vector<std::vector<std::byte>> memory_;
  data::Batch made_;
  std::vector<Flight> flights_;
  int micro_batch_ = -1;  // local index of the last batch
  double last_wait_ = 0;
};

}  // namespace tutti::train
