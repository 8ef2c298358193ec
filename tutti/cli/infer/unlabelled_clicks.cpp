#include "tutti/cli/infer/unlabelled.h"
#include "tutti/cli/job/job.h"

namespace tutti::cli {

std::unique_ptr<data::Dataset> open_unlabelled_clicks(
    const config::RunConfig& config, const std::vector<std::filesystem::path>& files) {
  data::ClickSetSpec spec = click_spec(config);
  spec.files = files;
  spec.labels = data::ClickLabels::may_be_missing;
  return std::make_unique<data::ClickSet>(spec);
}

}  // namespace tutti::cli
