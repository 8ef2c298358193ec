#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tutti/train/settings/resume_check.h"

namespace tutti::train {

std::string data_identity(const data::Dataset& dataset) {
  constexpr int64_t kMostBytes = 64 << 20, kFewestSamples = 4,
                    kCodedBytes = 128 << 10;  // approximately a photograph's size
  int64_t bytes = 0;
  std::string fields;
  for (const data::Field& field : dataset.fields()) {
    bytes += field.coded ? kCodedBytes : static_cast<int64_t>(field.bytes());
    fields += (fields.empty() ? "" : ", ") + field.to_string();
    if (!field.class_names.empty())
      fields += fmt::format(" in {} classes", field.class_names.size());
  }
  const int64_t affordable = std::max(kFewestSamples, kMostBytes / std::max<int64_t>(bytes, 1)),
                read = std::min(dataset.size(), affordable);
  const auto release = [](XXH64_state_t* state) { XXH64_freeState(state); };
  const std::unique_ptr<XXH64_state_t, decltype(release)> hash(XXH64_createState(), release);
  XXH64_reset(hash.get(), 0);
  data::Sample sample(dataset.fields());
  for (int64_t i = 0; i < read; ++i) {
    // 128 bits are not needed: sizes stay far below 2^40, `read` below 2^26.
    dataset.read(i * dataset.size() / read, sample);
    for (size_t f = 0; f < dataset.fields().size(); ++f) {
      const data::Field& field = dataset.fields()[f];
      const size_t size = field.coded ? sample.coded_at(f).size() : field.bytes();
      XXH64_update(hash.get(), sample.at(f), size);
    }
  }
  return fmt::format("{} samples of {}, checksum {:016x}", dataset.size(), fields,
                     XXH64_digest(hash.get()));
}

std::string statistics_identity(const data::Dataset& dataset) {
  std::vector<float> all;
  for (const data::Field& field : dataset.fields())
    for (const std::vector<float>* values : {&field.statistics.mean, &field.statistics.deviation,
                                             &field.statistics.least, &field.statistics.greatest})
      all.insert(all.end(), values->begin(), values->end());
  return fmt::format("statistics {:016x}", XXH64(all.data(), all.size() * sizeof(float), 0));
}

}  // namespace tutti::train
