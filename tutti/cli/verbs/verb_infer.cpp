// tutti infer: makes predictions for files without labels.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/base/own_file.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/data/run_tokenizer.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/infer/evaluation_ranks.h"
#include "tutti/cli/infer/import_weights.h"
#include "tutti/cli/infer/prediction_rows.h"
#include "tutti/cli/infer/saved_predictions.h"
#include "tutti/cli/infer/trace_volume.h"
#include "tutti/cli/infer/trained_model.h"
#include "tutti/cli/infer/unlabelled.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/data/file/file_list.h"
#include "tutti/data/format/array/row_writer.h"
#include "tutti/models/registry.h"
#include "tutti/train/loop/evaluator.h"
#include "tutti/train/network/given_weights.h"
#include "tutti/train/network/network.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

struct InferVerb {
  ConfigFlags flags;
  std::string weights, output, split;
  std::vector<std::string> inputs, fields;
  bool labels = false, json = false;
  int ranks = 0;
};

/// The array of one of the network's predictions: its values, or the largest class at each
/// position.
class PredictionRows {
 public:
  PredictionRows(const InferVerb& verb, const std::string& name, const Shape& batch,
                 int64_t samples, const PredictionSource& source)
      : path_(path_of_output(verb.output, name)), labels_(verb.labels), wide_(batch[1] > 256) {
    data::RowArray array{.name = "prediction",
                         .attributes = attributes_of(source, name),
                         .columns = row_columns(source.dataset.origins(), samples)};
    array.shape.assign(batch.begin(), batch.end());
    outputs_ = array.shape.at(1);
    array.shape.front() = samples;
    array.dimensions = {"sample", "output"};
    for (size_t d = 2; d < array.shape.size(); ++d) {
      constexpr const char* kAxes[] = {"z", "y", "x"};
      array.dimensions.emplace_back(kAxes[3 - (array.shape.size() - d)]);
      positions_ *= array.shape[d];
    }
    if (labels_) {
      array.name = "label";
      array.attributes["values"].text = "numbers of the most likely classes";
      array.type = wide_ ? data::ElementType::i32 : data::ElementType::u8;
      array.shape.erase(array.shape.begin() + 1);
      array.dimensions.erase(array.dimensions.begin() + 1);
    }
    writer_ = data::open_row_writer(path_, array, "--output");
  }

  /// Returns the path of the file.
  std::string path() const { return path_.string(); }

  void append(const float* y, int64_t count) {
    if (!labels_) return writer_->append(y, count);
    bytes_.clear();
    numbers_.clear();
    for (int64_t i = 0; i < count; ++i)
      for (int64_t p = 0; p < positions_; ++p) add_label(y + i * outputs_ * positions_ + p);
    writer_->append(wide_ ? static_cast<const void*>(numbers_.data()) : bytes_.data(), count);
  }
  void close() { writer_->close(); }

 private:
  /// The first of equal outputs counts.
  void add_label(const float* y) {
    int64_t best = 0;
    for (int64_t k = 1; k < outputs_; ++k)
      if (y[k * positions_] > y[best * positions_]) best = k;
    wide_ ? numbers_.push_back(static_cast<int32_t>(best))
          : bytes_.push_back(static_cast<uint8_t>(best));
  }

  std::filesystem::path path_;
  bool labels_, wide_;
  int64_t outputs_ = 1, positions_ = 1;
  std::unique_ptr<data::RowWriter> writer_;
  std::vector<uint8_t> bytes_;
  std::vector<int32_t> numbers_;
};

/// Refuses to write a file that is also read.
void refuse_to_replace_input(const std::filesystem::path& output,
                             const std::vector<std::filesystem::path>& inputs) {
  std::error_code unlike;
  for (const std::filesystem::path& file : inputs)
    if (std::filesystem::equivalent(file, output, unlike))
      throw ConfigError(
          fmt::format("--output: {} is one of the files that --input names: choose another name",
                      output.string()));
}

/// Returns a path beside the predictions that belongs only to them: out.nc has out.nc.files.txt.
std::string path_of_origins(const std::string& output) { return output + ".files.txt"; }

/// Refuses outputs that cannot be written, before anything takes time.
void check_outputs(const InferVerb& verb, const models::ModelSpec& model,
                   const std::vector<std::filesystem::path>& inputs) {
  refuse_to_replace_input(path_of_origins(verb.output), inputs);
  models::ModelSpec evaluated = model;
  evaluated.mode = ops::Mode::eval;
  for (const models::ModelReading& reading : models::build_model(evaluated).readings)
    refuse_to_replace_input(path_of_output(verb.output, reading.name), inputs);
  for (const models::Objective& objective : models::objectives_of(model)) {
    refuse_to_replace_input(path_of_output(verb.output, objective.name), inputs);
    if (verb.labels && *objective.task == models::TaskKind::regress)
      throw ConfigError("--labels: the network predicts numbers, not classes; leave the flag out");
    if (verb.labels && *objective.task == models::TaskKind::language)
      throw ConfigError(
          "--labels: of a text -log of the probability of each token is predicted, not classes; "
          "leave the flag out, and see 'tutti generate' for the tokens that a network chooses");
  }
}

/// Writes the file of each row; if there are none, removes the list of earlier predictions.
void write_origins(const InferVerb& verb, const std::string& origins) {
  const std::string path = path_of_origins(verb.output);
  if (origins.empty()) {
    std::error_code failed;
    if (std::filesystem::remove(path, failed) && !verb.json)
      fmt::print("{}: removed, it was of other predictions\n", path);
    if (failed) throw IoError(fmt::format("{}: cannot be removed: {}", path, failed.message()));
    return;
  }
  auto file = output_stream(path);
  errno = 0;
  file << origins << std::flush;
  if (!file) throw IoError(fmt::format("{}: cannot be written: {}", path, file_error(errno)));
  if (!verb.json) fmt::print("{}: the file of each, in the same order\n", path);
}

/// The data that predictions are made for.
struct InferredData {
  std::unique_ptr<data::Dataset> dataset;
  std::vector<std::filesystem::path> files;  ///< the files of --input
};

InferredData open_data(const InferVerb& verb, config::RunConfig& config,
                       const train::FoundWeights& found) {
  if (verb.inputs.empty()) {
    take_tokenizer(verb.weights, verb.split, config);
    return {open_configured(config, verb.split), {}};
  }
  if (config::is_text(config.data))
    throw ConfigError(
        "--input: of a text 'tutti eval' says how well it is predicted, and 'tutti generate' goes "
        "on with one; infer takes a part of the configured text, --split");
  if (config.data.dataset == "token-pairs")
    throw ConfigError(
        "--input: 'tutti translate --input' writes what the network makes of sources; infer takes "
        "a part of the configured pairs, --split");
  const bool images = config.data.dataset == "imagenet" && verb.fields.empty();
  const bool clicks = config.data.dataset == "clicks";
  if (clicks && !verb.fields.empty())
    throw ConfigError("--field: a click log says itself what its columns are: leave the flag out");
  std::vector<std::filesystem::path> files =
      images ? listed_images(verb.inputs) : data::listed_files(verb.inputs, ".", "--input");
  auto set = images   ? open_unlabelled_images(config, files, found)
             : clicks ? open_unlabelled_clicks(config, files)
                      : open_unlabelled(config, {.files = files, .fields = verb.fields}, found);
  return {std::move(set), std::move(files)};
}

struct PredictedSamples {
  int64_t count = 0;
  int readers = 1;          ///< threads
  bool first_rank = false;  ///< whether this is the first rank
};

/// Predicts for the whole data set; the first rank writes.
Json predict_all(const InferVerb& verb, train::Evaluator& evaluator,
                 const train::EvaluationNetwork& network, const PredictedSamples& samples,
                 const PredictionSource& source) {
  std::vector<PredictionRows> rows;
  for (size_t o = 0; samples.first_rank && o < network.predictions.size(); ++o)
    rows.emplace_back(verb, network.names[o], network.plan.desc(network.predictions[o]).shape,
                      samples.count, source);
  evaluator.predict(samples.count, samples.readers,
                    [&](size_t output, const float* y, int64_t count) {
                      if (samples.first_rank) rows[output].append(y, count);
                    });
  const char* kind = verb.labels ? "labels" : "predictions";
  Json files = Json::array();
  for (size_t o = 0; o < rows.size(); ++o) {
    rows[o].close();
    Json& file = files.emplace_back(Json{{"file", rows[o].path()}});
    if (!network.names[o].empty()) file["name"] = network.names[o];  // the only one has none
    if (!verb.json) fmt::print("{}: {} of {} samples\n", rows[o].path(), kind, samples.count);
  }
  if (samples.first_rank && !verb.labels && !verb.json)
    for (const std::string& sentence : train::unit_sentences(source.model))
      fmt::print("{}\n", sentence);
  return {{"samples", samples.count}, {kind, files}};
}

void check_flags(const InferVerb& verb) {
  if (verb.inputs.empty() == verb.split.empty())
    throw ConfigError(
        "infer needs files or a part of the configured data set: give --input or --split, one of "
        "them");
  if (!verb.fields.empty() && verb.inputs.empty())
    throw ConfigError(
        "--field says where the input lies in the files of --input; a --split lies as configured");
  require_output(verb.output, "--output");
}

/// Returns the input: a volume that is cut into objects.
std::filesystem::path traced_input(const InferVerb& verb) {
  if (verb.inputs.size() != 1 || !verb.fields.empty() || verb.labels)
    throw ConfigError(
        "infer of data.dataset = \"neurons\" cuts one volume into objects: give one --input, and "
        "neither --split nor --field nor --labels; data.fields names the arrays");
  return verb.inputs.front();
}

int cut_objects(const InferVerb& verb, const GivenNames& given, const train::FoundWeights& found,
                config::RunConfig& config, const EvaluationRanks& ranks) {
  const int code = trace_volume({traced_input(verb), verb.output}, given, found, config, ranks);
  if (verb.json && ranks.first()) print_json_output(Json{{"objects", verb.output}});
  return code;
}

/// Makes predictions with the weights that were found.
int infer(const InferVerb& verb, const GivenNames& given, const train::FoundWeights& found,
          config::RunConfig& config, const EvaluationRanks& ranks) {
  take_task(found, config);
  if (config.data.dataset == "neurons") return cut_objects(verb, given, found, config, ranks);
  const InferredData data = open_data(verb, config, found);
  const models::ModelSpec model =
      train::model_spec(config, *data.dataset, config::batch_sizes(config.batch, 1).local);
  check_outputs(verb, model, data.files);
  const ComputeBackend compute = compute_backend(config);
  split::SplitSettings split = train::split_settings(config);
  split.grid = ranks.grid();
  const auto network = train::compile_evaluation(
      model, split, compute.backend(), ranks.communicator(), plan_options_for(config, found));
  train::Weights weights(network->plan.variables, 1);
  import_weights(given, found, weights);

  std::vector<data::BatchField> inputs = network->batch();
  inputs.resize(network->inputs.size());
  const data::SampleWriter writer = input_writer(config, *data.dataset, inputs);
  const std::vector<data::ValueFunction> targets =
      train::steps_of_targets(config, *data.dataset, *network);
  train::Evaluator evaluator(
      {*network, compute.backend(), ranks.communicator(), *data.dataset, writer, targets}, {});
  evaluator.bind(weights.replica(0));
  Json report = predict_all(verb, evaluator, *network,
                            {.count = data.dataset->size(),
                             .readers = static_cast<int>(config.data.readers),
                             .first_rank = ranks.first()},
                            {.config = config,
                             .model = model,
                             .dataset = *data.dataset,
                             .found = found,
                             .weights = verb.weights,
                             .split = verb.split.empty() ? "files" : verb.split});
  if (!ranks.first()) return 0;
  const std::string origins = origin_lines(data.dataset->origins());
  write_origins(verb, origins);
  if (!origins.empty()) report["files"] = path_of_origins(verb.output);
  if (verb.json) print_json_output(report);
  return 0;
}

int run_infer(const InferVerb& verb) {
  check_flags(verb);
  ResolvedConfig resolved = verb.flags.read();
  config::RunConfig& config = resolved.config;
  const train::FoundWeights found = train::find_weights(verb.weights, "--weights");
  if (const auto code = launch_evaluation(verb.ranks, found, config)) return *code;
  const EvaluationRanks ranks(config, found, true);
  if (ranks.idle()) return 0;
  if (ranks.first())
    for (const std::string& warning : resolved.warnings) log::warn("{}", warning);

  const GivenNames given{.verb = "infer", .weights = verb.weights, .config = verb.flags.file()};
  return naming_networks(given, found, config,
                         [&] { return infer(verb, given, found, config, ranks); });
}

}  // namespace

Verb infer_verb() {
  auto state = std::make_shared<InferVerb>();  // shared: std::function must be copyable
  return {
      .name = "infer",
      .summary = "Predict for files without labels",
      .text =
          "Reads what the network reads from array or TFRecord files, one sample a file or many, "
          "or for data.dataset = \"imagenet\" from images and folders of them, or for \"clicks\" "
          "from logs whose lines may have no label, and writes what the network predicts, in their "
          "order, batch after batch: of classes the outputs before the "
          "softmax, samples x classes x positions; of numbers those of the data, since transforms "
          "of the target are undone. The transforms of the input are those of the configuration. "
          "index, file and row say which sample each row is, attributes which network predicted, "
          "in which units and with which classes: in out.nc and out.h5 themselves, of out.npy in "
          "out.npy.json. Beside out.nc, out.nc.files.txt names the file of each row, and its "
          "number in it where files hold several. Of data.dataset = \"neurons\" it reads one "
          "volume and writes the number of the object of each voxel, and where the volume has "
          "labels it says how good that is. With --ranks, as many as parallel.spatial says share "
          "each sample; further ranks have nothing to do.",
      .arguments = {state->flags.file_argument("infer", true)},
      .flags = joined(
          {weights_flag(state->weights, "infer"),
           named_flag(Names::file, "--input", "FILE",
                      "A file, a folder of files or a pattern in quotes; may be repeated",
                      &state->inputs),
           choice_flag("--split", "Instead of files, a part of the configured data set",
                       &state->split, {"train", "validation", "test"}),
           flag("--field", "LINE",
                "Where a field that the network reads lies in the files, as a line of "
                "data.fields: \"image: from images axis 0\"; may be repeated. By default as in "
                "the configured data set",
                &state->fields),
           required_flag(
               Names::file, "--output", "FILE",
               "Ends in .npy, .h5 or .nc, and is written so. Of several predictions each has a "
               "file: out.NAME.nc",
               &state->output, "infer needs a file to write, for example: --output predictions.nc"),
           switch_flag("--labels", "Write the most likely class instead of the outputs",
                       &state->labels),
           ranks_flag(state->ranks), json_flag(state->json)},
          state->flags.flags(
              {"data-dir", "batch-size", "precision", "device", "threads", "spatial", "tensor"})),
      .examples = {{"tutti infer run.toml --weights runs/mine --input maps --output out.nc",
                    "Predict for all files of a folder"},
                   {"tutti infer run.toml --weights runs/mine --split test --labels --output "
                    "labels.npy",
                    "The classes that the network finds in the test set"}},
      .see_also = {"tutti help eval", "docs/samples.md"},
      .run = [state] { return run_infer(*state); }};
}

}  // namespace tutti::cli
