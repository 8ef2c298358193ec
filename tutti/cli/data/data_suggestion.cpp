#include "tutti/cli/data/data_suggestion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/config/config.h"
#include "tutti/data/arrays/array_set.h"
#include "tutti/data/open/open.h"
#include "tutti/data/subset.h"

namespace tutti::cli {
namespace {

/// `tutti train` refuses this text, so that nobody trains on something else.
const std::string kNothing = "[data]\ndataset = \"arrays\"\n# There is none: ";
constexpr int64_t kMostLooked = int64_t{32} << 20;  // elements
constexpr int64_t kMostClasses = 1024, kMostOutputs = 4096;
constexpr int64_t kSmallMask = 32;  // deepcam-small takes no smaller masks

int64_t product(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  return elements;
}

bool is_label_name(const std::string& name) {
  const std::string last = name.substr(name.find_last_of('/') + 1);
  return last == "label" || last == "labels" || last == "class" || last == "classes" || last == "y";
}

/// Statistics of a field over samples.
struct Looked {
  double low = INFINITY, high = -INFINITY, sum = 0, squares = 0, count = 0;

  /// `missing` marks values that are not there; it does not count.
  void add(std::span<const float> values, std::optional<float> missing) {
    for (const float value : values) {
      if (missing && value == *missing) continue;
      const double x = value;
      low = std::min(low, x);
      high = std::max(high, x);
      sum += x;
      squares += x * x;
      ++count;
    }
  }
  double mean() const { return count > 0 ? sum / count : 0; }
  double deviation() const {
    return count > 0 ? std::sqrt(std::max(squares / count - mean() * mean(), 0.0)) : 0;
  }
};

/// Opens the files, reads some samples, and determines one line after another.
class Suggestion {
 public:
  Suggestion(const std::vector<FoundArray>& arrays, const SuggestedFiles& files) : files_(files) {
    for (const FoundArray& array : arrays)
      (array.unreadable ? unreadable_ : arrays_).push_back(array);
  }

  std::string text() {
    if (arrays_.empty()) return kNothing + "no array holds numbers that can be read\n";
    const FoundArray& input = *std::ranges::max_element(arrays_, {}, [](const FoundArray& a) {
      return std::tuple(product(a.shape), !a.whole_numbers, !a.wide);
    });
    if (product(input.shape) < 2) return kNothing + "no array holds more than a number\n";
    input_ = "input: from " + quoted(input.name) + input.as;
    for (const bool named : {true, false})  // arrays named as labels first
      for (const FoundArray& other : arrays_)
        if (target_.empty() && other.name != input.name &&
            named == (other.whole_numbers && is_label_name(other.name)))
          try_target(other);
    if (target_.empty() && part_is_unreadable(input))
      return kNothing + fmt::format(
                            "'{}' cannot be read (see above), and '{}' alone is no input with a "
                            "target\n",
                            unreadable_.front().name, input.name);
    if (target_.empty()) look({input_}), copy_of_input(input);
    if (target_.empty())
      return "# No array looks like a target, and samples are too large to be given back by a "
             "small "
             "network:\n# name two fields and choose a network, see docs/samples.md.\n" +
             data_text();
    shape_input();
    note_unlike_axes();
    return data_text() + model_text();
  }

 private:
  static std::string quoted(const std::string& name) {
    return name.find_first_of(" ,:") == std::string::npos ? name : "'" + name + "'";
  }

  /// Opens the training files with these fields; reads samples while they are not too many. Missing
  /// values do not count in the input's statistics, and the lines then replace them by its mean.
  void look(std::vector<std::string> lines) {
    missing_.clear();
    try {
      read(lines, {});
    } catch (const data::BadFile& error) {
      if (std::string_view(error.what()).find("missing V") == std::string_view::npos) throw;
      const bool whole = is_integer(set_->fields()[0].element);
      const float mark = unlikely_value(set_->fields()[0].element);
      lines[0] += fmt::format(" missing {}", mark);
      read(lines, mark);
      const double mean = looked_[0].mean();
      missing_ = fmt::format(" missing {:.6g}", whole ? std::round(mean) : mean);
    }
  }
  /// Returns a value of the type that an array is not expected to hold.
  static float unlikely_value(data::ElementType type) {
    float value = -1.5e30f;
    data::with_elements(type, nullptr, [&](const auto* x) {
      using T = std::remove_cvref_t<decltype(*x)>;
      if constexpr (std::is_integral_v<T>)
        value = std::is_signed_v<T> && sizeof(T) > 1
                    ? static_cast<float>(std::numeric_limits<T>::min() / 2 - 1)
                    : static_cast<float>(std::numeric_limits<T>::max() / 2 + 1);
    });
    return value;
  }
  void read(const std::vector<std::string>& lines, std::optional<float> missing) {
    set_ = data::open_dataset(
        {.name = "arrays", .dir = files_.dir, .arrays = {.train = files_.train, .fields = lines}});
    looked_.assign(lines.size(), {});
    int64_t each = 0;
    for (const data::Field& field : set_->fields()) each += field.elements();
    const int64_t samples = std::clamp<int64_t>(kMostLooked / each, 1, set_->size());
    data::Sample sample(set_->fields());
    for (int64_t i = 0; i < samples; ++i) {
      set_->read(i * set_->size() / samples, sample);
      for (size_t f = 0; f < lines.size(); ++f) {
        std::vector<float> values(static_cast<size_t>(set_->fields()[f].elements()));
        data::to_f32(set_->fields()[f].element, sample.at(f), std::ssize(values), values.data());
        looked_[f].add(values, f == 0 ? missing : std::nullopt);
      }
    }
  }

  /// Returns whether `other` can be the target; if so, sets target_ and task_.
  bool try_target(const FoundArray& other) {
    try {
      look({input_, "target: from " + quoted(other.name) + other.as});
    } catch (const Error&) {
      return false;  // it has another number of samples than the input
    }
    const data::Field &input = set_->fields()[0], &target = set_->fields()[1];
    const double classes = looked_[1].high + 1;
    const bool counts =
        other.whole_numbers && looked_[1].low >= 0 && classes >= 2 && classes <= kMostClasses;
    const std::string line = "target: from " + quoted(other.name) + other.as;
    if (counts && target.shape.rank() == 0) {
      task_ = "classify";
    } else if (counts && target.shape.rank() == 2 && covers(input.shape, target.shape)) {
      task_ = "segment";
    } else if (target.elements() <= kMostOutputs && target.elements() < input.elements() &&
               other.as.empty() && (!other.whole_numbers || target.shape.rank() < 2)) {
      task_ = "regress";
      target_ = line + fmt::format(" as {}", target.elements());
      return true;
    } else {
      return false;
    }
    target_ = line + fmt::format(" classes {:.0f}", classes);
    return true;
  }
  /// Returns whether the unreadable array is the labels, or `input` itself is labels, so that its
  /// input is unreadable.
  bool part_is_unreadable(const FoundArray& input) const {
    return !unreadable_.empty() &&
           ((input.whole_numbers && (input.shape.size() < 2 || is_label_name(input.name))) ||
            std::ranges::any_of(unreadable_,
                                [](const FoundArray& a) { return is_label_name(a.name); }));
  }
  /// Notes arrays of unlike first axes: a file whose label array was cut would be one sample.
  void note_unlike_axes() {
    const auto* const files = dynamic_cast<const data::FileSamples*>(set_.get());
    if (set_->size() > 1 || !files || files->how().find("first axes differ") == std::string::npos)
      return;
    log::warn("{}: if rows of these arrays are samples, one of the arrays was cut", files->how());
    note_ += fmt::format("# {}.\n# If rows of these arrays are samples, one was cut: correct it.\n",
                         files->how());
  }
  /// Returns whether the mask covers the input's rows and columns.
  static bool covers(const Shape& input, const Shape& mask) {
    if (mask[0] < 2 || mask[1] < 2) return false;
    if (input.rank() == 2) return input == mask;
    return input.rank() == 3 && ((input[0] == mask[0] && input[1] == mask[1]) ||
                                 (input[1] == mask[0] && input[2] == mask[1]));
  }

  void copy_of_input(const FoundArray& input) {
    const data::Field& field = set_->fields()[0];
    if (field.elements() > kMostOutputs * 16) return;
    note_ = "# No array looks like a target: the network learns to give back its input.\n";
    task_ = "regress";
    target_ = "target: from " + quoted(input.name) +
              (input.as.empty() ? fmt::format(" as {}", field.elements()) : input.as) + missing_;
    if (!input.as.empty()) target_.clear();
  }

  /// Adapts the input's extents and transforms to the network of the task.
  void shape_input() {
    const data::Field& field = set_->fields()[0];
    const Shape& shape = field.shape;
    const int rank = shape.rank();
    model_ = "mlp";
    if (task_ == "segment") {
      model_ = "deepcam-small";
      const Shape& mask = set_->fields()[1].shape;
      if (rank == 2) input_ += fmt::format(" as 1 {} {}", shape[0], shape[1]);
      if (rank == 3 && shape[0] == mask[0] && shape[1] == mask[1]) steps_ = "permute 2 0 1, ";
      if (mask[0] < kSmallMask || mask[1] < kSmallMask) model_ = "layers";
      const int64_t step = model_ == "layers" ? 1 : 16;
      const int64_t height = mask[0] / step * step, width = mask[1] / step * step;
      if (height != mask[0] || width != mask[1]) crop_ = fmt::format("crop {} {}", height, width);
      if (!crop_.empty()) steps_ += crop_ + ", ";
    } else if (rank == 4 && task_ == "regress" && is_cube(shape, 0)) {
      model_ = "cosmoflow";
      steps_ = "permute 3 0 1 2, ";
    } else if (rank == 4 && task_ == "regress" && is_cube(shape, 1)) {
      model_ = "cosmoflow";
    } else if (rank == 4) {
      model_ = "layers";
      if (shape[3] < shape[0]) steps_ = "permute 3 0 1 2, ";
    } else if (rank != 3) {
      const int64_t last = rank > 0 ? shape[rank - 1] : 1, before = rank > 1 ? shape[rank - 2] : 1;
      const int64_t outer = field.elements() / (last * before);
      if (const size_t as = input_.find(" as "); as == std::string::npos)
        input_ += fmt::format(" as {} {} {}", outer, before, last);
      else
        input_.replace(as, std::string::npos,
                       fmt::format(" as {} {} {} {}", name_of(field.element), outer, before, last));
    }
    const Looked& looked = looked_[0];
    if (field.element == data::ElementType::u8)
      steps_ += "divide 255";
    else if (looked.deviation() > 0)
      steps_ += fmt::format("normalise mean {:.6g} std {:.6g}", looked.mean(), looked.deviation());
    else
      steps_ += "multiply 1";
  }
  static bool is_cube(const Shape& shape, int first) {
    return shape[first] == shape[first + 1] && shape[first] == shape[first + 2] &&
           shape[first] % 32 == 0;
  }

  std::string data_text() const {
    std::vector<std::string> lines = {input_ + missing_};
    if (!target_.empty()) lines.push_back(target_);
    std::string text = fmt::format(
        "{}[data]\ndataset = \"arrays\"\ndir = {}\ntrain_files = {}\n{}{}fields = {}\n", note_,
        toml_of_path(files_.dir), config::to_toml(files_.train), validation_text(),
        files_.test.empty() ? "" : fmt::format("test_files = {}\n", config::to_toml(files_.test)),
        config::to_toml(lines));
    if (target_.empty()) return text;
    std::vector<std::string> steps = {"input: " + steps_};
    if (!crop_.empty()) steps.push_back("target: " + crop_);
    return text + fmt::format("transforms = {}\n", config::to_toml(steps));
  }
  bool is_judged() const { return !files_.validation.empty() || !files_.test.empty(); }
  std::string validation_text() const {
    if (is_judged() && files_.validation.empty()) return "";  // the test files judge the run
    std::string line = is_judged() ? "" : held_out(set_->size()).line;
    if (!line.empty()) return line;
    return fmt::format(
        "validation_files = {}{}\n",
        config::to_toml(is_judged() ? files_.validation : files_.train),
        is_judged() ? "" : "  # the training files: name others, which training does not see");
  }
  std::string model_text() const {
    const int64_t batch =
        std::min<int64_t>(is_judged() ? set_->size() : held_out(set_->size()).left,
                          task_ == "segment" || model_ == "cosmoflow" ? 2 : 16);
    const std::string network =
        model_ == "layers" ? layers_text()
                           : fmt::format("name = \"{}\"  # see `tutti model list`\ntask = \"{}\"\n",
                                         model_, task_);
    return fmt::format(
        "\n[model]\n{}\n[batch]\nglobal = {}\n\n[optimizer]\nname = \"adamw\"\nlr = "
        "0.001\n\n[run]\nepochs = 1\n",
        network, batch);
  }
  /// Returns a few convolutions, for inputs that no named network fits.
  std::string layers_text() const {
    const bool mask = task_ == "segment";
    std::string text =
        fmt::format("task = \"{}\"  # a small network of layers: make it larger\n", task_);
    for (const int channels : {16, 32})
      text += fmt::format(
          "[[model.layer]]\ntype = \"conv\"\nchannels = {}\nkernel = 3\npad = 1\n{}activation = "
          "\"relu\"\n",
          channels, mask ? "" : "stride = 2\n");
    return text + (mask ? "[[model.layer]]\ntype = \"conv\"\n"
                        : "[[model.layer]]\ntype = \"global_average\"\n[[model.layer]]\ntype = "
                          "\"dense\"\n");
  }

  std::vector<FoundArray> arrays_, unreadable_;
  const SuggestedFiles& files_;
  std::unique_ptr<data::Dataset> set_;
  std::vector<Looked> looked_;
  std::string input_, target_, task_, model_, steps_, crop_, missing_, note_;
};

}  // namespace

HeldOut held_out(int64_t samples) {
  if (samples < 2) return {"", samples};
  const double share = samples >= 10 ? 0.1
                       : samples > 3 ? 2
                                     : 0.5;  // 2: an absolute number of
                                             // samples
  const int64_t count = data::validation_count(share, samples);
  return {fmt::format("validation = {}  # there is no validation set: {} of the training samples\n",
                      share, count),
          samples - count};
}

std::string suggested_configuration(const std::vector<FoundArray>& arrays,
                                    const SuggestedFiles& files) {
  try {
    return Suggestion(arrays, files).text();
  } catch (const Error& error) {
    return fmt::format("{}{}\n", kNothing, error.what());
  }
}

}  // namespace tutti::cli
