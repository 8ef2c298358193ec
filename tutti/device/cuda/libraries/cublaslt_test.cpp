// CublasLt by a stand-in of cuBLASLt, which checks all that it is asked.

#include "tutti/device/cuda/libraries/cublaslt.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/device/cuda/libraries/cublaslt_stand_in.h"

namespace tutti::device {
namespace {

/// Memory that begins where workspaces may.
class Operand {
 public:
  explicit Operand(size_t bytes) : blocks_(bytes / sizeof(Block) + 1), bytes_(bytes) {
    std::memset(static_cast<void*>(blocks_.data()), 0xff, bytes);  // no numbers
  }
  void* data() { return blocks_.data(); }
  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(blocks_.data()), bytes_};
  }

 private:
  struct alignas(256) Block {
    std::byte bytes[256];
  };
  std::vector<Block> blocks_;
  size_t bytes_;
};

size_t element_bytes(LibraryType type) {
  return type == LibraryType::f32 || type == LibraryType::tf32 ? 4 : 2;
}

float rounded(float value, LibraryType type) {
  if (type == LibraryType::bf16) return __bfloat162float(__float2bfloat16_rn(value));
  if (type == LibraryType::f16) return __half2float(__float2half_rn(value));
  return value;
}

/// A matrix [rows, columns] that lies row by row.
struct Matrix {
  LibraryType type;
  int64_t rows, columns;
  Operand memory{static_cast<size_t>(rows * columns) * element_bytes(type)};

  float at(int64_t row, int64_t column) {
    const auto i = static_cast<size_t>(row * columns + column);
    if (type == LibraryType::bf16)
      return __bfloat162float(static_cast<__nv_bfloat16*>(memory.data())[i]);
    if (type == LibraryType::f16) return __half2float(static_cast<__half*>(memory.data())[i]);
    return static_cast<float*>(memory.data())[i];
  }
  void fill(std::minstd_rand& random) {
    std::uniform_real_distribution<float> numbers(-1, 1);
    for (size_t i = 0; i < static_cast<size_t>(rows * columns); ++i) {
      const float value = numbers(random);
      if (type == LibraryType::bf16)
        static_cast<__nv_bfloat16*>(memory.data())[i] = __float2bfloat16_rn(value);
      else if (type == LibraryType::f16)
        static_cast<__half*>(memory.data())[i] = __float2half_rn(value);
      else
        static_cast<float*>(memory.data())[i] = value;
    }
  }
};

class NativeStream : public Stream {
 public:
  std::string_view name() const override { return "native"; }
  void copy(void*, const void*, size_t) override { FAIL(); }
  void fill(void*, std::byte, size_t) override { FAIL(); }
  void launch(const Launch&) override { FAIL(); }
  void host(std::shared_ptr<HostWork>) override { FAIL(); }
  void record(Event&) override { FAIL(); }
  void wait(const Event&) override { FAIL(); }
  void begin_recording() override { FAIL(); }
  std::unique_ptr<Recording> end_recording() override { return nullptr; }
  void replay(const Recording&) override { FAIL(); }
  void* native() override { return this; }
};

LibraryDense layer(LayerProduct makes, LibraryType type, int64_t rows, int64_t inputs,
                   int64_t outputs, bool f32_result = false, bool bias = false) {
  return {.makes = makes,
          .type = type,
          .f32_result = f32_result,
          .bias = bias,
          .rows = rows,
          .inputs = inputs,
          .outputs = outputs};
}

/// A layer with random numbers, and the product as plain loops have it.
class Layer {
 public:
  explicit Layer(const LibraryDense& dense)
      : dense_(dense), x_{type_of(LayerProduct::x), dense.rows, dense.inputs},
        w_{type_of(LayerProduct::w), dense.outputs, dense.inputs},
        y_{type_of(LayerProduct::y), dense.rows, dense.outputs}, bias_{LibraryType::f32, 1,
                                                                       dense.outputs} {
    std::minstd_rand random(7);
    for (Matrix* one : {&x_, &w_, &y_, &bias_})
      if (one != &result()) one->fill(random);
  }

  Matrix& result() {
    return dense_.makes == LayerProduct::y ? y_ : dense_.makes == LayerProduct::x ? x_ : w_;
  }
  LibraryOperands operands(Operand& workspace) {
    const bool makes_x = dense_.makes == LayerProduct::x, makes_w = dense_.makes == LayerProduct::w;
    return {.first = makes_x ? y_.memory.data() : x_.memory.data(),
            .second = makes_w ? y_.memory.data() : w_.memory.data(),
            .bias = dense_.bias ? static_cast<const float*>(bias_.memory.data()) : nullptr,
            .result = result().memory.data(),
            .workspace = workspace.data()};
  }
  std::vector<std::span<const std::byte>> memory() const {
    return {x_.memory.bytes(), w_.memory.bytes(), y_.memory.bytes(), bias_.memory.bytes()};
  }

  /// Returns the largest difference from the plain product, in units of the bound that f32 sums and
  /// the result's type leave.
  double error() {
    double most = 0;
    Matrix& made = result();
    for (int64_t i = 0; i < made.rows; ++i)
      for (int64_t j = 0; j < made.columns; ++j) {
        const double want = plain(i, j);
        const double half_ulp = made.type == LibraryType::bf16  ? 0x1p-8
                                : made.type == LibraryType::f16 ? 0x1p-11
                                                                : 0x1p-24;
        const double bound = half_ulp * std::abs(want) + 0x1p-24;
        const double error = std::abs(made.at(i, j) - want) / bound;
        if (!(error <= most)) most = error;  // not a number is an error, too
      }
    return most;
  }

 private:
  LibraryType type_of(LayerProduct which) const {
    return which == dense_.makes && dense_.f32_result ? LibraryType::f32 : dense_.type;
  }
  double plain(int64_t i, int64_t j) {
    double sum = dense_.bias ? double{bias_.at(0, j)} : 0;
    if (dense_.makes == LayerProduct::y)
      for (int64_t k = 0; k < dense_.inputs; ++k) sum += double{x_.at(i, k)} * w_.at(j, k);
    if (dense_.makes == LayerProduct::x)
      for (int64_t k = 0; k < dense_.outputs; ++k) sum += double{y_.at(i, k)} * w_.at(k, j);
    if (dense_.makes == LayerProduct::w)
      for (int64_t k = 0; k < dense_.rows; ++k) sum += double{y_.at(k, i)} * x_.at(k, j);
    return sum;
  }

  LibraryDense dense_;
  Matrix x_, w_, y_, bias_;
};

class CublasLtByStandIn : public testing::Test {
 protected:
  CublasLtByStandIn() {
    told_ = {};
    told_.stream = stream_.native();
  }
  ~CublasLtByStandIn() override {
    library_.reset();
    EXPECT_EQ(told_.live, 0);
  }

  CublasLt& library() {
    if (!library_) library_ = std::make_unique<CublasLt>(kStandIn);
    return *library_;
  }
  /// Computes a layer by a way, and returns its error.
  double run(const LibraryDense& dense, const LibraryWay& way) {
    Layer layer(dense);
    Operand workspace(way.workspace_bytes);
    told_.memory = layer.memory();
    told_.memory.push_back(workspace.bytes());
    library().call(dense, way.name)->put(stream_, layer.operands(workspace));
    return layer.error();
  }

  static constexpr const char* kStandIn = TUTTI_CUBLASLT_STAND_IN;
  CublasLtStandIn& told_ = *tutti_cublaslt_stand_in();
  NativeStream stream_;
  std::unique_ptr<CublasLt> library_;
};

constexpr std::array kProducts = {LayerProduct::y, LayerProduct::x, LayerProduct::w};
constexpr std::array kTypes = {LibraryType::f32, LibraryType::tf32, LibraryType::bf16,
                               LibraryType::f16};

TEST_F(CublasLtByStandIn, MakesAllProductsInAllWays) {
  constexpr std::array<std::array<int64_t, 3>, 4> kSizes = {
      {{1, 1, 1}, {3, 5, 7}, {33, 17, 9}, {16, 32, 8}}};
  for (const auto& [rows, inputs, outputs] : kSizes)
    for (const LayerProduct makes : kProducts)
      for (const LibraryType type : kTypes)
        for (const bool f32_result : {false, true})
          for (const bool bias : {false, true}) {
            const LibraryDense dense = layer(makes, type, rows, inputs, outputs, f32_result, bias);
            if (bias && makes != LayerProduct::y) continue;
            const std::vector<LibraryWay> ways = library().ways(dense);
            for (const LibraryWay& way : ways) {
              SCOPED_TRACE(fmt::format("{} {} {} {} {} {} {} {}", static_cast<int>(makes),
                                       static_cast<int>(type), rows, inputs, outputs, f32_result,
                                       bias, way.name));
              if (bias && element_bytes(type) == 2 && !f32_result) {
                EXPECT_EQ(way.name, "");
                EXPECT_TRUE(has_text(way.refusal, "a bias of the result's type alone"));
                EXPECT_THROW(library().call(dense, "cublaslt:0 tile=15"), DeviceError);
                continue;
              }
              EXPECT_EQ(way.refusal, "");
              const double error = run(dense, way);
              EXPECT_LE(error, type == LibraryType::tf32 ? 0x1p16 : 1);
              // tf32 is asked for where it should be, and is not there by chance.
              EXPECT_TRUE(type != LibraryType::tf32 || inputs == 1 || error > 8) << error;
            }
          }
}

TEST_F(CublasLtByStandIn, NamesMakeTheAlgorithmsThatHeuristicsOffer) {
  const LibraryDense dense = layer(LayerProduct::y, LibraryType::bf16, 16, 32, 8);
  const std::vector<LibraryWay> ways = library().ways(dense);
  const std::vector<cublasLtMatmulAlgo_t> offered = told_.offered;
  ASSERT_EQ(offered.size(), 8u);
  ASSERT_EQ(ways.size(), 7u);  // one is offered twice
  EXPECT_EQ(ways[0].name, "cublaslt:66 tile=393 stages=36 cluster=3");
  EXPECT_EQ(ways[0].workspace_bytes, 1000u);
  EXPECT_EQ(ways[1].name, "cublaslt:6 tile=20 stages=15 splitk=3 reduction=2 swizzle=1");
  EXPECT_EQ(ways[1].workspace_bytes, 3u * 16 * 8 * 4);
  EXPECT_EQ(ways[2].name, "cublaslt:21 tile=18 custom=7 inner=4");
  EXPECT_EQ(ways[4].name, "cublaslt:2 tile=11 splitk=0");
  for (size_t i = 0; i < ways.size(); ++i) {
    EXPECT_LE(run(dense, ways[i]), 1);
    const cublasLtMatmulAlgo_t& meant = offered[i < 4 ? i : i + 1];
    EXPECT_EQ(std::memcmp(&told_.used, &meant, sizeof(meant)), 0) << ways[i].name;
  }
}

TEST_F(CublasLtByStandIn, RefusesNamesThatAreNotItsOwn) {
  const LibraryDense dense = layer(LayerProduct::y, LibraryType::f32, 3, 5, 7);
  for (const char* name : {"", "cublaslt", "cublaslt:", "cublaslt:x", "cudnn:eng6", "cublaslt:6x",
                           "cublaslt:6 tile", "cublaslt:6 tile=", "cublaslt:6 tile=20x",
                           "cublaslt:6 colour=3", "cublaslt:-6", "cublaslt:6 =3"})
    EXPECT_TRUE(throws<DeviceError>({fmt::format("no way '{}'", name)},
                                    [&] { library().call(dense, name); }));
  EXPECT_TRUE(throws<DeviceError>(
      {"cuBLASLt 13.", "y of a dense layer, 3 rows, 5 inputs, 7 outputs, f32 by 'cublaslt:99'",
       "CUBLAS_STATUS_INVALID_VALUE"},
      [&] { library().call(dense, "cublaslt:99"); }));
  EXPECT_TRUE(throws<DeviceError>({"CUBLAS_STATUS_NOT_SUPPORTED"},
                                  [&] { library().call(dense, "cublaslt:0 tile=16"); }));
  // It needs columns at multiples of 16 bytes.
  EXPECT_TRUE(throws<DeviceError>({"CUBLAS_STATUS_NOT_SUPPORTED"}, [&] {
    library().call(dense, "cublaslt:66 tile=393 stages=36 cluster=3");
  }));
}

TEST_F(CublasLtByStandIn, RefusesWhatACarelessLibraryOffers) {
  told_.is_careless = true;
  std::set<std::string> refusals;
  for (const LibraryType type : kTypes) {
    const LibraryDense dense = layer(LayerProduct::w, type, 3, 5, 7);
    const bool rounds = type == LibraryType::f32 || type == LibraryType::f16;
    for (const LibraryWay& way : library().ways(dense)) {
      refusals.insert(way.refusal);
      const bool adds_parts = way.name.find("reduction=1") != way.name.npos ||
                              way.name.find("reduction=4") != way.name.npos;
      EXPECT_EQ(way.refusal.empty(), !rounds && !adds_parts) << way.name << ": " << way.refusal;
      if (way.refusal.empty()) continue;
      EXPECT_TRUE(
          throws<DeviceError>({way.name, way.refusal}, [&] { library().call(dense, way.name); }));
    }
  }
  EXPECT_EQ(refusals, (std::set<std::string>{
                          "", "adds parts of a sum in the memory or the type of the result",
                          "rounds f32 factors", "sums in f16"}));
  told_.has_algorithms = false;
  const std::vector<LibraryWay> none =
      library().ways(layer(LayerProduct::x, LibraryType::f32, 3, 5, 7));
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].name, "");
  EXPECT_TRUE(has_text(none[0].refusal, "has no algorithm for it"));
}

TEST_F(CublasLtByStandIn, CannotBeGivenOperandsThatAreNotAligned) {
  const LibraryDense dense =
      layer(LayerProduct::y, LibraryType::f32, 16, 32, 8, /*f32_result=*/false, /*bias=*/true);
  const LibraryWay way = library().ways(dense).at(0);
  ASSERT_GT(way.workspace_bytes, 0u);
  Layer layer(dense);
  Operand workspace(way.workspace_bytes);
  const LibraryOperands right = layer.operands(workspace);
  const auto call = library().call(dense, way.name);
  const auto expect_refusal = [&](const char* what, auto LibraryOperands::*which, size_t bytes) {
    LibraryOperands wrong = right;
    wrong.*which = reinterpret_cast<std::remove_reference_t<decltype(wrong.*which)>>(
        reinterpret_cast<uintptr_t>(right.*which) + bytes);
    EXPECT_TRUE(throws<InternalError>({what, "is not at a multiple of"},
                                      [&] { call->put(stream_, wrong); }));
    wrong.*which = nullptr;
    EXPECT_TRUE(throws<InternalError>({what}, [&] { call->put(stream_, wrong); }));
  };
  expect_refusal("B", &LibraryOperands::first, 8);
  expect_refusal("A", &LibraryOperands::second, 8);
  expect_refusal("the bias", &LibraryOperands::bias, 8);
  expect_refusal("the result", &LibraryOperands::result, 8);
  expect_refusal("the workspace", &LibraryOperands::workspace, 128);
}

TEST_F(CublasLtByStandIn, SaysWhyThereIsNone) {
  const LibraryDense dense = layer(LayerProduct::y, LibraryType::f32, 3, 5, 7);
  const auto expect_problem = [&](const std::string& place, const std::string& reason) {
    CublasLt library(place);
    EXPECT_TRUE(library.version().starts_with("no cuBLASLt: "));
    EXPECT_TRUE(has_text(library.version(), reason));
    const std::vector<LibraryWay> ways = library.ways(dense);
    ASSERT_EQ(ways.size(), 1u);
    EXPECT_EQ(ways[0].name, "");
    EXPECT_TRUE(has_text(ways[0].refusal, reason));
    EXPECT_TRUE(throws<DeviceError>({reason}, [&] { library.call(dense, "cublaslt:0"); }));
  };
  expect_problem("/nowhere/libcublasLt.so", "/nowhere/libcublasLt.so cannot be loaded");
  expect_problem("libm.so.6", "libm.so.6 has no cublasLtCreate");
  told_.has_device = false;
  expect_problem(kStandIn, "opening it: CUBLAS_STATUS_NOT_INITIALIZED: it finds no device");
  told_.version = 110302;
  expect_problem(kStandIn, fmt::format("cuBLASLt 11.3.2 was found, and version {} is needed",
                                       CUBLAS_VER_MAJOR));
  told_ = {};
  EXPECT_EQ(library().version(),
            fmt::format("cuBLASLt {}.{}.{}", CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH));
}

TEST_F(CublasLtByStandIn, KeepsNothingOfAnyCallThatFails) {
  const LibraryDense dense = layer(LayerProduct::y, LibraryType::f32, 16, 32, 8, false, true);
  const auto ways = library().ways(dense);
  int refused = 0, failed = 0;
  bool done = false;
  for (int n = 0; !done; ++n) {
    ASSERT_LT(n, 1000);
    library_.reset();
    told_.calls_until_failure = n + 1;
    try {
      const std::vector<LibraryWay> found = library().ways(dense);
      for (const LibraryWay& way : found)
        if (way.refusal.empty())
          run(dense, way);
        else
          ++refused;
      done = told_.calls_until_failure > 0;
      EXPECT_TRUE(!done || found.size() == ways.size());
    } catch (const DeviceError& error) {
      ++failed;
      EXPECT_TRUE(has_text(error.what(), "CUBLAS_STATUS_ALLOC_FAILED: there is no memory left"));
    }
    told_.calls_until_failure = 0;
    EXPECT_EQ(told_.live, library().version().starts_with("cuBLASLt") ? 1 : 0);  // the handle
  }
  EXPECT_GT(refused, 10);
  EXPECT_GT(failed, 50);
}

}  // namespace
}  // namespace tutti::device
