#include "tutti/device/cuda/libraries/cudnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/device/cuda/libraries/cudnn_convolution.h"

namespace tutti::device {
namespace {

constexpr std::string_view kCudnnPrefix = "cudnn:eng";

/// An engine of cuDNN's, and the values of its knobs.
struct CudnnConfiguration {
  int64_t engine = 0;
  std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> knobs;
};

std::string name_of(const CudnnConfiguration& configuration) {
  std::string name = fmt::format("{}{}", kCudnnPrefix, configuration.engine);
  for (const auto& [knob, value] : configuration.knobs)
    name += fmt::format(" k{}={}", static_cast<int>(knob), value);
  return name;
}

/// Takes a number from the front of `text`; returns whether there was one.
bool take_number(std::string_view& text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc();
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// Returns the configuration of a name; none if the text is no such name.
std::optional<CudnnConfiguration> configuration_of(std::string_view name) {
  CudnnConfiguration read;
  if (!take(name, kCudnnPrefix) || !take_number(name, read.engine)) return std::nullopt;
  while (!name.empty()) {
    int64_t knob = 0, value = 0;
    if (!take(name, " k") || !take_number(name, knob) || !take(name, "=") ||
        !take_number(name, value))
      return std::nullopt;
    read.knobs.emplace_back(static_cast<cudnnBackendKnobType_t>(knob), value);
  }
  return read;
}

CudnnConfiguration read_configuration(const CudnnDescriptor& config,
                                      const CudnnDescriptor& engine) {
  CudnnConfiguration read{.engine = engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), .knobs = {}};
  for (const CudnnDescriptor& choice :
       config.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                          CUDNN_KNOB_TYPE_COUNTS))
    read.knobs.emplace_back(
        choice
            .get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1)
            .at(0),
        choice.number(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  return read;
}

/// Returns why an engine's results would not be those that are asked for, or come too late; empty:
/// it may be taken.
std::string refusal_of(const CudnnDescriptor& engine, LibraryType type) {
  const auto numerics = engine.get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                                CUDNN_TYPE_NUMERICAL_NOTE, 32);
  const auto behaviour = engine.get<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                                CUDNN_TYPE_BEHAVIOR_NOTE, 32);
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::ranges::find(numerics, note) != numerics.end();
  };
  if (has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return "not deterministic";
  if (std::ranges::find(behaviour, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != behaviour.end())
    return "compiled at run time";
  if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return "sums of less than f32";
  if (type == LibraryType::f32 && has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE))
    return "tensor cores round f32 to tf32";
  // With tf32, too: it may be to a type of 16 bits.
  return has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) ? "rounds its factors" : "";
}

class CudnnHandle {
 public:
  CudnnHandle() { check_cudnn(cudnn_functions().create(&handle_), "opening it"); }
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  ~CudnnHandle() { cudnn_functions().destroy(handle_); }
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

class CudnnCall : public LibraryCall {
 public:
  CudnnCall(cudnnHandle_t handle, CudnnConvolution work, CudnnDescriptor plan)
      : handle_(handle), work_(std::move(work)), plan_(std::move(plan)) {}

  void put(Stream& stream, const LibraryOperands& operands) override {
    // cuDNN writes to the result alone.
    const std::array addresses = {const_cast<void*>(operands.first),
                                  const_cast<void*>(operands.second), operands.result};
    for (const void* const address : addresses)
      CHECK(address && reinterpret_cast<uintptr_t>(address) % kCudnnAlignment == 0,
            "an operand of cuDNN's is at {}, not at a multiple of {}", address, kCudnnAlignment);
    CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, work_.operands)
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
             std::span<void* const>(addresses))
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, operands.workspace)
        .finish("taking the addresses");
    check_cudnn(cudnn_functions().set_stream(handle_, static_cast<cudaStream_t>(stream.native())),
                "taking the stream");
    check_cudnn(cudnn_functions().execute(handle_, plan_.handle(), pack.handle()),
                "putting a convolution on the stream");
  }

 private:
  cudnnHandle_t handle_;
  CudnnConvolution work_;
  CudnnDescriptor plan_;
};

}  // namespace

struct Cudnn::Opened {
  std::optional<CudnnHandle> handle;           // on the current device
  std::optional<CudnnDescriptor> description;  // describes a device that is not here

  explicit Opened(const std::string& properties) {
    if (properties.empty()) {
      handle.emplace();
      return;
    }
    description.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    description
        ->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              std::span<const char>(properties))
        .finish("reading the description of the device");
  }

  CudnnConvolution graph(const LibraryConvolution& convolution) const {
    return cudnn_convolution(convolution, handle ? handle->get() : nullptr);
  }

  std::vector<CudnnDescriptor> configurations(const CudnnConvolution& work,
                                              cudnnBackendHeurMode_t mode) const {
    CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, work.graph)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (description) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *description);
    heuristics.finish("asking for engines");
    return heuristics.descriptors(
        CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
        static_cast<size_t>(heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS)));
  }

  CudnnDescriptor engine_of(const CudnnDescriptor& config) const {
    std::vector<CudnnDescriptor> engines =
        config.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
    if (engines.empty()) throw DeviceError("cuDNN offers an engine that it does not name");
    return std::move(engines.front());
  }

  CudnnDescriptor config_of(const CudnnConvolution& work, const CudnnConfiguration& wanted) const {
    CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, work.graph)
        .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, wanted.engine);
    if (description) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *description);
    engine.finish("taking an engine");
    std::vector<CudnnDescriptor> choices;
    std::vector<cudnnBackendDescriptor_t> handles;
    for (const auto& [knob, value] : wanted.knobs) {
      CudnnDescriptor& choice = choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
      choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, knob)
          .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value)
          .finish("taking a knob's value");
      handles.push_back(choice.handle());
    }
    CudnnDescriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (!handles.empty())
      config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                 std::span<const cudnnBackendDescriptor_t>(handles));
    config.finish("taking an engine with its knobs");
    return config;
  }

  CudnnDescriptor plan_of(const CudnnDescriptor& config) const {
    CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (handle) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle->get());
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (description) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *description);
    plan.finish("planning");
    return plan;
  }

  LibraryWay way_of(const CudnnDescriptor& config, LibraryType type) const {
    const CudnnDescriptor engine = engine_of(config);
    LibraryWay way{.name = name_of(read_configuration(config, engine)),
                   .refusal = refusal_of(engine, type)};
    if (!way.refusal.empty()) return way;
    try {
      way.workspace_bytes =
          static_cast<size_t>(plan_of(config).number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
    } catch (const DeviceError& failed) {
      way.refusal = failed.what();
    }
    return way;
  }

  void add_ways(std::vector<LibraryWay>& ways, const LibraryConvolution& convolution,
                cudnnBackendHeurMode_t mode) const {
    const CudnnConvolution work = graph(convolution);
    for (const CudnnDescriptor& config : configurations(work, mode)) {
      LibraryWay way = way_of(config, convolution.type);
      if (std::ranges::find(ways, way.name, &LibraryWay::name) == ways.end())
        ways.push_back(std::move(way));
    }
  }
};

Cudnn::Cudnn(const CudnnDevice& device) : problem_(cudnn_functions().problem) {
  if (!problem_.empty()) return;
  try {
    opened_ = std::make_unique<Opened>(device.properties);
  } catch (const DeviceError& failed) {
    problem_ = fmt::format("{}: {}", device.words, failed.what());
  }
}

Cudnn::~Cudnn() = default;

std::string cudnn_version() {
  const CudnnFunctions& functions = cudnn_functions();
  if (!functions.problem.empty()) return "no cuDNN: " + functions.problem;
  const size_t version = functions.version();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string Cudnn::version() const {
  return problem_.empty() ? cudnn_version() : "no cuDNN: " + problem_;
}

std::vector<LibraryWay> Cudnn::ways(const LibraryConvolution& convolution) {
  if (!opened_) return {{.name = "", .refusal = problem_}};
  std::vector<LibraryWay> ways;
  std::string problem = "cuDNN has no engine for it";
  // Fallbacks come last: they may be all that is offered, or all that needs little workspace.
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    try {
      opened_->add_ways(ways, convolution, mode);
    } catch (const DeviceError& failed) {
      problem = failed.what();
    }
  }
  if (ways.empty()) ways.push_back({.name = "", .refusal = problem});
  return ways;
}

LibraryWay Cudnn::way(const LibraryConvolution& convolution, const std::string& name) {
  const std::optional<CudnnConfiguration> wanted = configuration_of(name);
  if (!opened_) throw DeviceError(problem_);
  if (!wanted) throw DeviceError(fmt::format("'{}' is no way of cuDNN's", name));
  const CudnnConvolution work = opened_->graph(convolution);
  return opened_->way_of(opened_->config_of(work, *wanted), convolution.type);
}

std::unique_ptr<LibraryCall> Cudnn::call(const LibraryConvolution& convolution,
                                         const std::string& name) {
  const LibraryWay found = way(convolution, name);
  if (!found.refusal.empty())
    throw DeviceError(fmt::format("{} is not taken: {}", name, found.refusal));
  if (!opened_->handle)
    throw DeviceError(fmt::format("{} cannot run: its device is a description", name));
  CudnnConvolution work = opened_->graph(convolution);
  CudnnDescriptor plan = opened_->plan_of(opened_->config_of(work, *configuration_of(name)));
  return std::make_unique<CudnnCall>(opened_->handle->get(), std::move(work), std::move(plan));
}

}  // namespace tutti::device
