#include "tutti/train/infer/translator.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/ops/fusion/fuse.h"

namespace tutti::train {
namespace {

constexpr const char* kTokensField = "tokens";

models::ModelGraph built_for_evaluation(const models::ModelSpec& model) {
  models::ModelSpec spec = model;
  spec.mode = ops::Mode::eval;
  spec.batch = 1;
  return models::build_model(spec);
}

}  // namespace

Translator::Translator(const models::ModelSpec& model, int64_t sources, const BeamSettings& beam,
                       const backend::Backend& backend, plan::PlanOptions options)
    : rows_{.sources = sources, .copies = beam.size}, beam_(beam) {
  const models::ModelGraph built = built_for_evaluation(model);
  const auto reads = [&](const std::string& field) {
    return std::ranges::find(built.inputs, field, &models::GraphInput::field) != built.inputs.end();
  };
  if (model.inputs.size() == 2 && model.input_field != kTokensField && reads(kTokensField)) {
    plan_ = plan::compile(ops::fuse_forward(built.graph).graph, backend, options);
    steps_ = TokenSteps::of(model, kTokensField, rows_, backend, options, plan_.variables);
  }
  if (!steps_ || steps_->source_window() == 0)
    throw ConfigError(
        fmt::format("the model '{}' does not write one sequence from another: it needs the fields "
                    "source and tokens of data.dataset = \"token-pairs\", and a decoder that sees "
                    "what it has written",
                    model.name));
  beam_.longest = steps_->window();
}

std::vector<WrittenSequence> Translator::write(std::span<const std::vector<int32_t>> sources) {
  std::vector<WrittenSequence> written;
  const auto side_by_side = static_cast<size_t>(rows_.sources);
  for (size_t first = 0; first < sources.size(); first += side_by_side)
    write_some(sources.subspan(first, std::min(side_by_side, sources.size() - first)), written);
  return written;
}

void Translator::write_some(std::span<const std::vector<int32_t>> sources,
                            std::vector<WrittenSequence>& written) {
  const auto window = static_cast<size_t>(source_window()), width = static_cast<size_t>(beam_.size);
  // Unused sources are filled with one token; their results are ignored.
  std::vector<int32_t> read(static_cast<size_t>(rows_.sources) * window, -1);
  for (size_t s = 0; s < static_cast<size_t>(rows_.sources); ++s) read[s * window] = 0;
  for (size_t s = 0; s < sources.size(); ++s) {
    CHECK(!sources[s].empty() && sources[s].size() <= window, "a source of {} tokens",
          sources[s].size());
    std::ranges::copy(sources[s], read.begin() + static_cast<std::ptrdiff_t>(s * window));
  }
  std::vector<BeamSearch> searches(sources.size(), BeamSearch(beam_));
  std::vector<int32_t> last(static_cast<size_t>(rows_.count()), beam_.end_token), from(last.size());
  steps_->begin(read);
  for (size_t s = 0; s < from.size(); ++s) from[s] = static_cast<int32_t>(s);
  while (!std::ranges::all_of(searches, &BeamSearch::done)) {
    const std::span<const float> logits = steps_->step(last);
    const size_t of_search = width * static_cast<size_t>(steps_->vocabulary());
    for (size_t s = 0; s < searches.size(); ++s) {
      if (searches[s].done()) continue;
      searches[s].advance(logits.subspan(s * of_search, of_search));
      for (size_t i = 0; i < width; ++i) {
        last[s * width + i] = searches[s].last()[i];
        from[s * width + i] = static_cast<int32_t>(s * width) + searches[s].from()[i];
      }
    }
    if (beam_.size > 1) steps_->keep(from);
  }
  for (const BeamSearch& search : searches) written.push_back(search.best());
}

}  // namespace tutti::train
