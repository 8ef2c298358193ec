#include "tutti/train/loop/moving_fields.h"

#include <algorithm>
#include <chrono>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/data/neurons/neuron_set.h"

namespace tutti::train {
namespace {

constexpr const char *kCanvas = "seeds/canvas", *kPlace = "seeds/place", *kTaken = "seeds/taken";
constexpr size_t kPlaceNumbers = 4, kTakenNumbers = 3;
/// Stream of Purpose::seeds for the order of moves; data/neurons draws at lower streams.
constexpr uint64_t kMovesStream = uint64_t{1} << 63;

Move3 last_three(const Shape& shape) {
  return {shape[shape.rank() - 3], shape[shape.rank() - 2], shape[shape.rank() - 1]};
}

int64_t voxels_of(const Move3& extents) { return extents[0] * extents[1] * extents[2]; }

void number_to_floats(int64_t number, float* out) {
  for (int i = 0; i < 3; ++i) out[i] = static_cast<float>(number >> (16 * i) & 0xffff);
}
int64_t number_from_floats(const float* in) {
  int64_t number = 0;
  for (int i = 0; i < 3; ++i) number |= static_cast<int64_t>(in[i]) << (16 * i);
  return number;
}

keep::NamedTensor zeroed(const char* name, const Shape& shape) {
  return {name,
          {DType::f32, shape, {}},
          std::vector<std::byte>(static_cast<size_t>(shape.elements()) * sizeof(float))};
}
float* numbers_of(keep::NamedTensor& tensor) {
  return reinterpret_cast<float*>(tensor.bytes.data());
}

/// Reads one of the `rows` of a rank's tensor.
std::vector<float> micro_batch_row(const keep::SafetensorsFile& file, const char* name, int row,
                                   int rows, size_t count) {
  const keep::SafetensorsFile::Entry* entry = file.find(name);
  const uint64_t bytes = count * sizeof(float), from = static_cast<uint64_t>(row) * bytes;
  if (!entry || entry->type != keep::SafetensorsFile::Type::f32 || row >= rows ||
      entry->end - entry->begin != static_cast<uint64_t>(rows) * bytes)
    throw ConfigError(fmt::format(
        "the checkpoint has no {} numbers '{}' of micro-batch {}: it is of another tracing.fov, "
        "tracing.deltas or batch, or of a run whose fields of view stood still",
        count, name, row));
  std::vector<float> values(count);
  file.read_part(*entry, from, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

std::vector<Move3> shuffled_moves(const Move3& deltas, uint64_t seed) {
  std::vector<Move3> moves;
  for (const int64_t z : {-deltas[0], int64_t{0}, deltas[0]})
    for (const int64_t y : {-deltas[1], int64_t{0}, deltas[1]})
      for (const int64_t x : {-deltas[2], int64_t{0}, deltas[2]})
        if (const Move3 move{z, y, x};
            move != Move3{} && std::ranges::find(moves, move) == moves.end())
          moves.push_back(move);
  Rng rng(seed, Purpose::seeds, kMovesStream);
  for (size_t i = moves.size(); i > 1; --i)
    std::swap(moves[i - 1], moves[rng.below(static_cast<uint32_t>(i))]);
  moves.insert(moves.begin(), Move3{});
  return moves;
}

std::vector<data::BatchField> canvas_fields(const std::vector<data::BatchField>& batch,
                                            const data::Dataset& canvases) {
  std::vector<data::BatchField> fields;
  for (const data::BatchField& one : batch) {
    const Move3 wide = last_three(data::field_named(canvases, one.field).shape);
    fields.push_back({one.field, {DType::f32, {1, 1, wide[0], wide[1], wide[2]}, {}}, {}});
  }
  return fields;
}

MovingFields::MovingFields(MovingFieldsSpec spec, std::vector<data::BatchField> batch,
                           const data::Dataset& canvases, data::SampleWriter writer,
                           const exchange::ReplicaMap& micro_batches)
    : spec_(std::move(spec)), batch_(std::move(batch)), canvases_(canvases),
      writer_(std::move(writer)), micro_batches_(micro_batches),
      sampler_({.seed = spec_.seed,
                .size = canvases.size(),
                .replicas = micro_batches.replicas(),
                .local_batch = 1,
                .node_of = spec_.node_of}),
      moves_(shuffled_moves(spec_.deltas, spec_.seed)), threshold_(data::logit(spec_.threshold)),
      sample_(canvases.fields()), flights_(static_cast<size_t>(micro_batches.local_count())) {
  const auto grown = std::ranges::find(batch_, spec_.grown, &data::BatchField::field);
  if (grown == batch_.end())
    throw ConfigError(fmt::format(
        "the network does not read the field '{}', which its predictions are to replace: "
        "data.dataset = \"neurons\" is for a network that reads it, as model.name = \"ffn\"",
        spec_.grown));
  grown_ = static_cast<size_t>(grown - batch_.begin());
  const Shape& shape = grown->desc.shape;
  CHECK(shape.rank() == 5 && shape[1] == 1, "a field of view {}", grown->desc.to_string());
  places_ = shape[0];
  view_ = last_three(shape);
  wide_ = last_three(canvases.fields().front().shape);
  for (size_t a = 0; a < 3; ++a)
    CHECK(wide_[a] == view_[a] + 2 * spec_.deltas[a], "a canvas of {} for a view of {}", wide_[a],
          view_[a]);
  for (const data::BatchField& field : batch_) {
    CHECK(field.desc.shape == shape, "{} beside {}", field.desc.to_string(),
          grown->desc.to_string());
    memory_.emplace_back(field.desc.bytes());
    made_.tensors.push_back(memory_.back().data());
    std::array<std::vector<int64_t>, 5>& terms = terms_.emplace_back();
    for (int d = 0; d < 5; ++d)
      terms[static_cast<size_t>(d)] = field.desc.layout.terms(field.desc.shape, d);
  }
  for (Flight& one : flights_) one.seeds.resize(static_cast<size_t>(places_));
}

void MovingFields::load(int local_micro_batch, Seed& seed) {
  const int64_t per_epoch = sampler_.steps_per_epoch(), epoch = seed.place.seed / per_epoch;
  const int64_t index = sampler_.index(
      {epoch, seed.place.seed % per_epoch, micro_batches_.replica(local_micro_batch)}, 0);
  canvases_.read(index, sample_);
  data::Slot tensors;
  seed.canvas.resize(batch_.size());
  for (std::vector<float>& canvas : seed.canvas) {
    canvas.resize(static_cast<size_t>(voxels_of(wide_)));
    tensors.push_back(canvas.data());
  }
  writer_.write(sample_, epoch, index, 0, tensors);
}

void MovingFields::take_next(int local_micro_batch, Seed& seed) {
  seed.place = {flights_[static_cast<size_t>(local_micro_batch)].taken++, 0};
  load(local_micro_batch, seed);
}

void MovingFields::begin() {
  for (int micro_batch = 0; micro_batch < micro_batches_.local_count(); ++micro_batch)
    for (Seed& seed : flights_[static_cast<size_t>(micro_batch)].seeds)
      take_next(micro_batch, seed);
}

void MovingFields::restore(keep::RankFileReader& files, const exchange::ReplicaMap& before) {
  const auto voxels = static_cast<size_t>(voxels_of(wide_)), places = static_cast<size_t>(places_);
  for (int micro_batch = 0; micro_batch < micro_batches_.local_count(); ++micro_batch) {
    const int global = micro_batches_.replica(micro_batch), owner = before.owner(global),
              begin = before.first()[static_cast<size_t>(owner)], row = global - begin,
              rows = before.first()[static_cast<size_t>(owner) + 1] - begin;
    const keep::SafetensorsFile& file = files.file(owner);
    const std::vector<float> logits = micro_batch_row(file, kCanvas, row, rows, places * voxels),
                             place =
                                 micro_batch_row(file, kPlace, row, rows, places * kPlaceNumbers),
                             taken = micro_batch_row(file, kTaken, row, rows, kTakenNumbers);
    Flight& flight = flights_[static_cast<size_t>(micro_batch)];
    flight.taken = number_from_floats(taken.data());
    for (size_t p = 0; p < places; ++p) {
      Seed& seed = flight.seeds[p];
      const float* own = place.data() + p * kPlaceNumbers;
      seed.place = {number_from_floats(own), static_cast<int>(own[3])};
      if (seed.place.move < 0 || seed.place.move >= std::ssize(moves_))
        throw ConfigError(fmt::format(
            "the checkpoint has a field of view at move {} of {}: it is of another tracing.deltas, "
            "or damaged",
            seed.place.move, moves_.size()));
      load(micro_batch, seed);
      std::copy_n(logits.data() + p * voxels, voxels, seed.canvas[grown_].data());
    }
  }
}

/// Returns the field of view's first voxel in the canvas.
int64_t MovingFields::corner(const Move3& move) const {
  return ((spec_.deltas[0] + move[0]) * wide_[1] + spec_.deltas[1] + move[1]) * wide_[2] +
         spec_.deltas[2] + move[2];
}

void MovingFields::show(size_t tensor, const Seed& seed, int64_t position) {
  const std::array<std::vector<int64_t>, 5>& terms = terms_[tensor];
  const float* from =
      seed.canvas[tensor].data() + corner(moves_[static_cast<size_t>(seed.place.move)]);
  const auto write = [&](auto* out) {
    for (int64_t z = 0; z < view_[0]; ++z)
      for (int64_t y = 0; y < view_[1]; ++y) {
        const float* row = from + (z * wide_[1] + y) * wide_[2];
        auto* to = out + terms[0][static_cast<size_t>(position)] + terms[1][0] +
                   terms[2][static_cast<size_t>(z)] + terms[3][static_cast<size_t>(y)];
        for (size_t x = 0; x < static_cast<size_t>(view_[2]); ++x)
          to[terms[4][x]] = std::remove_cvref_t<decltype(*out)>(row[x]);
      }
  };
  const DType type = batch_[tensor].desc.dtype;
  if (type == DType::bf16) return write(static_cast<bf16*>(made_.tensors[tensor]));
  CHECK(type == DType::f32, "a field of view of {}", name_of(type));
  write(static_cast<float*>(made_.tensors[tensor]));
}

const data::Batch& MovingFields::next() {
  const auto start = std::chrono::steady_clock::now();
  micro_batch_ = (micro_batch_ + 1) % micro_batches_.local_count();
  for (int64_t p = 0; p < places_; ++p)
    for (size_t t = 0; t < batch_.size(); ++t) show(t, flight().seeds[static_cast<size_t>(p)], p);
  made_.id = {.position = {.epoch = flight().taken / sampler_.steps_per_epoch(),
                           .step = flight().taken % sampler_.steps_per_epoch(),
                           .replica = micro_batches_.replica(micro_batch_)},
              .count = places_,
              .augment = true};
  last_wait_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return made_;
}

bool MovingFields::advance(Seed& seed) const {
  const int64_t middle = ((view_[0] / 2) * wide_[1] + view_[1] / 2) * wide_[2] + view_[2] / 2;
  const std::vector<float>& logits = seed.canvas[grown_];
  for (auto m = static_cast<size_t>(seed.place.move) + 1; m < moves_.size(); ++m)
    if (logits[static_cast<size_t>(corner(moves_[m]) + middle)] >= threshold_) {
      seed.place.move = static_cast<int>(m);
      return true;
    }
  return false;
}

void MovingFields::take(const float* y) {
  CHECK(micro_batch_ >= 0, "a prediction before the first batch");
  for (Seed& seed : flight().seeds) {
    float* to = seed.canvas[grown_].data() + corner(moves_[static_cast<size_t>(seed.place.move)]);
    for (int64_t z = 0; z < view_[0]; ++z)
      for (int64_t row = 0; row < view_[1]; ++row, y += view_[2])
        std::copy_n(y, view_[2], to + (z * wide_[1] + row) * wide_[2]);
    if (!advance(seed)) take_next(micro_batch_, seed);
  }
}

std::vector<keep::NamedTensor> MovingFields::state() const {
  const int64_t micro_batches = std::ssize(flights_), voxels = voxels_of(wide_);
  std::vector<keep::NamedTensor> tensors = {
      zeroed(kCanvas, {micro_batches, places_, voxels}),
      zeroed(kPlace, {micro_batches, places_, static_cast<int64_t>(kPlaceNumbers)}),
      zeroed(kTaken, {micro_batches, static_cast<int64_t>(kTakenNumbers)})};
  float *canvas = numbers_of(tensors[0]), *place = numbers_of(tensors[1]),
        *taken = numbers_of(tensors[2]);
  for (const Flight& flight : flights_) {
    number_to_floats(flight.taken, taken);
    taken += kTakenNumbers;
    for (const Seed& seed : flight.seeds) {
      canvas = std::ranges::copy(seed.canvas[grown_], canvas).out;
      number_to_floats(seed.place.seed, place);
      place[3] = static_cast<float>(seed.place.move);
      place += kPlaceNumbers;
    }
  }
  return tensors;
}

}  // namespace tutti::train
