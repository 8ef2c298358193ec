#include "tutti/data/store/quarantine.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/data/images/coded_image.h"

namespace tutti::data {

class Quarantine::State {
 public:
  State(std::shared_ptr<const Dataset> all, const QuarantineSpec& spec,
        std::shared_ptr<ReadCounts> counts)
      : all_(std::move(all)), spec_(spec), counts_(std::move(counts)) {
    for (size_t f = 0; f < all_->fields().size(); ++f)
      if (all_->fields()[f].coded) coded_.push_back(f);
    if (!coded_.empty()) sound_ = std::vector<std::atomic<bool>>(static_cast<size_t>(all_->size()));
  }

  const Dataset& all() const { return *all_; }

  void read(int64_t index, Sample& sample) {
    for (int64_t tried = 0; tried < all_->size(); ++tried) {
      const int64_t at = (index + tried) % all_->size();
      if (is_bad(at)) continue;
      try {
        all_->read(at, sample);
        return look_into(at, sample);
      } catch (const IoError& error) {
        leave_out(at, error);
      } catch (const ConfigError& error) {  // thrown for a label beyond data.classes
        leave_out(at, error);
      }
    }
    throw IoError(fmt::format("data.quarantine: none of the {} {} samples can be read",
                              all_->size(), spec_.part));
  }

 private:
  /// Decodes each coded image completely, once: training decodes a random part, on which leaving
  /// out a damaged image may not depend. Decoding at an eighth of the size reads all of the data,
  /// and skips most of the arithmetic.
  void look_into(int64_t index, const Sample& sample) {
    if (coded_.empty() || sound_[static_cast<size_t>(index)]) return;
    thread_local DecodedImage image;
    for (const size_t f : coded_) try {
        const ImageSize size = image_size(sample.coded_at(f));
        decode_image(sample.coded_at(f), {0, 0, size.height, size.width}, 1, image);
      } catch (const BadFile& error) {
        throw BadFile("{} {}", sample.origin(), error.what());
      }
    sound_[static_cast<size_t>(index)] = true;
  }

  bool is_bad(int64_t index) {
    const std::lock_guard lock(mutex_);
    return bad_.contains(index);
  }

  void leave_out(int64_t index, const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!bad_.insert(index).second) return;  // another reader was faster
    const std::string reason = fmt::format("{} sample {}: {}", spec_.part, index, error.what());
    if (std::ssize(bad_) > spec_.most)
      throw IoError(fmt::format(
          "{}; data.quarantine goes on without {} bad samples, and this is one more: look at the "
          "data, or let it be larger",
          reason, spec_.most));
    counts_->leave_out(reason);
    log::warn("left out, the next sound sample takes its place: {}", reason);
  }

  const std::shared_ptr<const Dataset> all_;
  const QuarantineSpec spec_;
  const std::shared_ptr<ReadCounts> counts_;
  std::vector<size_t> coded_;             // indices of coded fields
  std::vector<std::atomic<bool>> sound_;  // for coded samples: already checked
  std::mutex mutex_;
  std::set<int64_t> bad_;  // guarded by mutex_
};

Quarantine::Quarantine(std::shared_ptr<const Dataset> all, const QuarantineSpec& spec,
                       std::shared_ptr<ReadCounts> counts)
    : state_(std::make_shared<State>(std::move(all), spec, std::move(counts))) {}

Quarantine::~Quarantine() = default;

int64_t Quarantine::size() const { return state_->all().size(); }
int64_t Quarantine::spacing() const { return state_->all().spacing(); }
const std::vector<Field>& Quarantine::fields() const { return state_->all().fields(); }
std::vector<SamplesOfFile> Quarantine::files() const { return state_->all().files(); }
SampleOrigins Quarantine::origins() const { return state_->all().origins(); }

void Quarantine::read(int64_t index, Sample& sample) const {
  const std::shared_ptr<State> state = state_;
  state->read(index, sample);
}

}  // namespace tutti::data
