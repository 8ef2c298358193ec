#include "tutti/cli/job.h"
#include "tutti/cli/unlabelled.h"

namespace tutti {
namespace {

class ClicksToPredict final : public UnlabelledSet {
 public:
  explicit ClicksToPredict(const data::ClickSetSpec& spec) : set_(spec) {}
  std::string origins() const override {
    std::string text;
    for (int64_t i = 0; i < size(); ++i) {
      const auto [file, line] = set_.place(i);
      text += fmt::format("{}\t{}\n", file, line);
    }
    return text;
  }
  int64_t size() const override { return set_.size(); }
  const std::vector<data::Field>& fields() const override { return set_.fields(); }
  void read(int64_t index, data::Sample& sample) const override { set_.read(index, sample); }

 private:
  const data::ClickSet set_;
};

}  // namespace

std::unique_ptr<UnlabelledSet> open_unlabelled_clicks(
    const RunConfig& config, const std::vector<std::filesystem::path>& files) {
  data::ClickSetSpec spec = click_spec(config);
  spec.files = files;
  spec.labels = data::ClickLabels::may_be_missing;
  return std::make_unique<ClicksToPredict>(spec);
}

}  // namespace tutti
