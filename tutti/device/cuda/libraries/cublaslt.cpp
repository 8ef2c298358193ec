#include "tutti/device/cuda/libraries/cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <sstream>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/device/cuda/libraries/cublaslt_product.h"

namespace tutti::device {
namespace {

constexpr int kMostWays = 8;
constexpr uint32_t kWorkspaceAlignment = 256;  // as cuBLASLt wants it
constexpr std::string_view kPrefix = "cublaslt:";

/// A setting of an algorithm, which is named where its value is not the usual one.
struct AlgorithmSetting {
  cublasLtMatmulAlgoConfigAttributes_t attribute;
  std::string_view word;
  size_t bytes;
  uint32_t usual = 0;
};
constexpr std::array kAlgorithmSettings = {
    AlgorithmSetting{CUBLASLT_ALGO_CONFIG_TILE_ID, "tile", 4},
    AlgorithmSetting{CUBLASLT_ALGO_CONFIG_STAGES_ID, "stages", 4},
    AlgorithmSetting{CUBLASLT_ALGO_CONFIG_SPLITK_NUM, "splitk", 4, 1},
    AlgorithmSetting{CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, "reduction", 4},
    AlgorithmSetting{CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, "swizzle", 4},
    AlgorithmSetting{CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, "custom", 4},
    AlgorithmSetting{CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, "inner", 2},
    AlgorithmSetting{CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, "cluster", 2},
};

/// `bytes` is 2 or 4; the first bytes of a number are its lowest ones wherever there are GPUs.
uint32_t setting_of(const CublasLtFunctions& lt, const cublasLtMatmulAlgo_t& algorithm,
                    cublasLtMatmulAlgoConfigAttributes_t attribute, size_t bytes = 4) {
  uint32_t value = 0;
  size_t written = 0;
  check_cublaslt(lt, lt.get_algorithm(&algorithm, attribute, &value, bytes, &written),
                 "asking for an algorithm's settings");
  return value;
}

std::string name_of(const CublasLtFunctions& lt, const cublasLtMatmulAlgo_t& algorithm) {
  std::string name =
      fmt::format("{}{}", kPrefix, setting_of(lt, algorithm, CUBLASLT_ALGO_CONFIG_ID));
  for (const AlgorithmSetting& one : kAlgorithmSettings) {
    const uint32_t value = setting_of(lt, algorithm, one.attribute, one.bytes);
    if (value != one.usual) name += fmt::format(" {}={}", one.word, value);
  }
  return name;
}

struct AlgorithmName {
  int id = 0;
  std::vector<std::pair<const AlgorithmSetting*, uint32_t>> settings;
};

/// Reads what name_of() writes.
AlgorithmName parse_name(const std::string& way) {
  const auto wrong = [&] { return DeviceError(fmt::format("cuBLASLt has no way '{}'", way)); };
  const auto number = [&](std::string_view text) {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) throw wrong();
    return value;
  };
  std::istringstream words(way);
  std::string word;
  words >> word;
  if (!word.starts_with(kPrefix)) throw wrong();
  AlgorithmName name{.id = static_cast<int>(number(word.substr(kPrefix.size()))), .settings = {}};
  while (words >> word) {
    const size_t equals = word.find('=');
    if (equals == word.npos) throw wrong();
    const auto* const one =
        std::ranges::find(kAlgorithmSettings, word.substr(0, equals), &AlgorithmSetting::word);
    if (one == kAlgorithmSettings.end()) throw wrong();
    name.settings.emplace_back(one, number(word.substr(equals + 1)));
  }
  return name;
}

/// Returns why an algorithm is not taken; empty: it is. What it was asked for by should leave none
/// to refuse.
std::string refusal_of(const CublasLtFunctions& lt, const cublasLtMatmulAlgo_t& algorithm,
                       LibraryType type) {
  if (setting_of(lt, algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) & ~kCublasLtReductions)
    return "adds parts of a sum in the memory or the type of the result";
  uint64_t how = 0;
  size_t written = 0;
  check_cublaslt(lt,
                 lt.get_ability(&algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &how,
                                sizeof(how), &written),
                 "asking how an algorithm computes");
  constexpr uint64_t kRounds = CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32 |
                               CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF |
                               CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F;
  if (type == LibraryType::f32 && (how & kRounds)) return "rounds f32 factors";
  if (how & CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F) return "sums in f16";
  return "";
}

/// Returns why the library is not asked; empty: it is.
std::string refusal_of(const LibraryDense& dense) {
  if (!dense.bias || cublaslt_types(dense).result == CUDA_R_32F) return "";
  return "cuBLASLt adds a bias of the result's type alone, and a bias in f32 to a result of 16 "
         "bits takes a kernel of its own";
}

class CublasLtCall : public LibraryCall {
 public:
  /// Throws DeviceError if the library has no such way for the layer.
  CublasLtCall(const CublasLtFunctions& lt, cublasLtHandle_t handle, const LibraryDense& dense,
               const std::string& way)
      : lt_(lt), handle_(handle), has_bias_(dense.bias),
        words_(fmt::format("{} by '{}'", dense_words(dense), way)),
        product_(cublaslt_product(lt, dense)) {
    const CublasLtTypes types = cublaslt_types(dense);
    const AlgorithmName name = parse_name(way);
    check_cublaslt(
        lt,
        lt.begin_algorithm(handle, types.compute, kCublasLtScale, types.factors, types.factors,
                           types.result, types.result, name.id, &algorithm_),
        words_);
    for (const auto& [one, value] : name.settings)
      check_cublaslt(lt, lt.set_algorithm(&algorithm_, one->attribute, &value, one->bytes), words_);
    cublasLtMatmulHeuristicResult_t result = {};
    check_cublaslt(
        lt,
        lt.check_algorithm(handle, product_.operation.get(), product_.a.get(), product_.b.get(),
                           product_.result.get(), product_.result.get(), &algorithm_, &result),
        words_);
    workspace_bytes_ = result.workspaceSize;
  }

  const cublasLtMatmulAlgo_t& algorithm() const { return algorithm_; }
  size_t workspace_bytes() const { return workspace_bytes_; }

  void put(Stream& stream, const LibraryOperands& operands) override {
    const void* const a = product_.first_is_a ? operands.first : operands.second;
    const void* const b = product_.first_is_a ? operands.second : operands.first;
    check_alignment("A", a, kCublasLtAlignment);
    check_alignment("B", b, kCublasLtAlignment);
    check_alignment("the result", operands.result, kCublasLtAlignment);
    if (workspace_bytes_ > 0)
      check_alignment("the workspace", operands.workspace, kWorkspaceAlignment);
    if (has_bias_) {
      check_alignment("the bias", operands.bias, kCublasLtAlignment);
      set_bias(lt_, product_, operands.bias);
    }
    constexpr float kOne = 1, kNothing = 0;
    check_cublaslt(
        lt_,
        lt_.multiply(handle_, product_.operation.get(), &kOne, a, product_.a.get(), b,
                     product_.b.get(), &kNothing, operands.result, product_.result.get(),
                     operands.result, product_.result.get(), &algorithm_, operands.workspace,
                     workspace_bytes_, static_cast<cudaStream_t>(stream.native())),
        words_);
  }

 private:
  void check_alignment(const char* what, const void* address, uint32_t bytes) const {
    CHECK(address && reinterpret_cast<uintptr_t>(address) % bytes == 0,
          "{}: {} is not at a multiple of {}", words_, what, bytes);
  }

  const CublasLtFunctions& lt_;
  cublasLtHandle_t handle_;
  bool has_bias_;
  std::string words_;  // in errors
  CublasLtProduct product_;
  cublasLtMatmulAlgo_t algorithm_ = {};
  size_t workspace_bytes_ = 0;
};

}  // namespace

struct CublasLt::Opened {
  CublasLtFunctions lt;
  CublasLtOwned<cublasLtContext> handle{nullptr, nullptr};

  explicit Opened(CublasLtFunctions functions) : lt(std::move(functions)) {
    cublasLtHandle_t made = nullptr;
    check_cublaslt(lt, lt.create(&made), "opening it");
    handle = {made, lt.destroy};
  }

  /// Returns what its heuristics expect to be fastest, at most as many as there is room for.
  std::span<const cublasLtMatmulHeuristicResult_t> ask(
      const LibraryDense& dense, std::span<cublasLtMatmulHeuristicResult_t> room) const {
    const CublasLtProduct product = cublaslt_product(lt, dense);
    const auto preference = cublaslt_preference(lt);
    int count = 0;
    const cublasStatus_t status =
        lt.heuristic(handle.get(), product.operation.get(), product.a.get(), product.b.get(),
                     product.result.get(), product.result.get(), preference.get(),
                     static_cast<int>(room.size()), room.data(), &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
    check_cublaslt(lt, status, dense_words(dense));
    return room.first(static_cast<size_t>(count));
  }
};

CublasLt::CublasLt(const std::string& library) {
  CublasLtFunctions functions = cublaslt_functions(library);
  problem_ = functions.problem;
  if (!problem_.empty()) return;
  try {
    opened_ = std::make_unique<Opened>(std::move(functions));
  } catch (const DeviceError& failed) {
    problem_ = failed.what();
  }
}

CublasLt::~CublasLt() = default;

std::string cublaslt_version() {
  const CublasLtFunctions functions = cublaslt_functions({});
  return functions.problem.empty() ? cublaslt_version(functions)
                                   : "no cuBLASLt: " + functions.problem;
}

std::string CublasLt::version() const {
  return opened_ ? cublaslt_version(opened_->lt) : "no cuBLASLt: " + problem_;
}

std::vector<LibraryWay> CublasLt::ways(const LibraryDense& dense) {
  const std::string refusal = opened_ ? refusal_of(dense) : problem_;
  if (!refusal.empty()) return {{.name = "", .refusal = refusal}};
  std::array<cublasLtMatmulHeuristicResult_t, kMostWays> room = {};
  std::vector<LibraryWay> ways;
  for (const cublasLtMatmulHeuristicResult_t& result : opened_->ask(dense, room)) {
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    LibraryWay way{.name = name_of(opened_->lt, result.algo), .refusal = ""};
    if (std::ranges::find(ways, way.name, &LibraryWay::name) != ways.end()) continue;
    try {
      // A way is offered as its name makes it.
      const CublasLtCall call(opened_->lt, opened_->handle.get(), dense, way.name);
      way.refusal = refusal_of(opened_->lt, call.algorithm(), dense.type);
      way.workspace_bytes = call.workspace_bytes();
    } catch (const DeviceError& failed) {
      way.refusal = failed.what();
    }
    ways.push_back(std::move(way));
  }
  if (ways.empty())
    return {{.name = "", .refusal = cublaslt_version(opened_->lt) + " has no algorithm for it"}};
  return ways;
}

std::unique_ptr<LibraryCall> CublasLt::call(const LibraryDense& dense, const std::string& way) {
  const std::string refusal = opened_ ? refusal_of(dense) : problem_;
  if (!refusal.empty()) throw DeviceError(refusal);
  auto call = std::make_unique<CublasLtCall>(opened_->lt, opened_->handle.get(), dense, way);
  const std::string reason = refusal_of(opened_->lt, call->algorithm(), dense.type);
  if (!reason.empty()) throw DeviceError(fmt::format("{} {}", way, reason));
  return call;
}

}  // namespace tutti::device
