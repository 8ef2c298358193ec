#pragma once
// For tests: libraries of an emulated device, which compute by host work on memory of the device.
// The ways that they offer are a test's, and a way's name may ask for a fault.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/device/libraries.h"
#include "tutti/tensor/dtype.h"

namespace tutti::device {

/// The work of one call. A way whose name contains "wrong" adds 0.1 to the last element of the
/// result, "restless" changes a bit of the first one each second time, "coarse" rounds f32 factors
/// to 10 bits, as tf32 does.
class StandInProduct final : public HostWork {
 public:
  /// `runs` counts the runs of all that share it.
  StandInProduct(const LibraryConvolution& c, bool f32_result, const LibraryOperands& operands,
                 const std::string& way, std::shared_ptr<int> runs)
      : c_(c), f32_result_(f32_result || !halves()), at_(operands),
        wrong_(way.find("wrong") != way.npos), restless_(way.find("restless") != way.npos),
        coarse_(c.type == LibraryType::tf32 || way.find("coarse") != way.npos),
        runs_(std::move(runs)) {}

  void run() override {
    const std::vector<double> x = made(LayerProduct::x), w = made(LayerProduct::w),
                              y = made(LayerProduct::y);
    const std::vector<double>*const first = c_.makes == LayerProduct::x ? &y : &x,
                                    *const second = c_.makes == LayerProduct::w ? &y : &w;
    std::vector<double> result = sums(*first, *second);
    if (wrong_) result.back() += 0.1;
    for (size_t i = 0; i < result.size(); ++i) write(i, static_cast<float>(result[i]));
    if (++*runs_ % 2 == 0 && restless_) *static_cast<uint8_t*>(at_.result) ^= 1;
  }

 private:
  bool halves() const { return c_.type == LibraryType::bf16; }
  size_t spatial_elements(const std::array<int64_t, 3>& extents) const {
    int64_t n = 1;
    for (int d = 0; d < c_.spatial; ++d) n *= extents[static_cast<size_t>(d)];
    return static_cast<size_t>(n);
  }
  size_t elements(LayerProduct operand) const {
    const auto samples = static_cast<size_t>(c_.samples), inputs = static_cast<size_t>(c_.inputs),
               outputs = static_cast<size_t>(c_.outputs);
    if (operand == LayerProduct::x) return samples * spatial_elements(c_.in) * inputs;
    if (operand == LayerProduct::y) return samples * spatial_elements(c_.out) * outputs;
    return outputs * spatial_elements(c_.window) * inputs / static_cast<size_t>(c_.groups);
  }
  /// Returns an operand; an empty one for the result.
  std::vector<double> made(LayerProduct operand) const {
    if (operand == c_.makes) return {};
    const bool is_first =
        operand == LayerProduct::x || (c_.makes == LayerProduct::x && operand == LayerProduct::y);
    const void* const from = is_first ? at_.first : at_.second;
    std::vector<double> numbers(elements(operand));
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = halves() ? static_cast<float>(static_cast<const bf16*>(from)[i])
                            : rounded(static_cast<const float*>(from)[i]);
    return numbers;
  }
  float rounded(float x) const {
    if (!coarse_) return x;
    return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000u) & ~uint32_t{0x1FFF});
  }
  void write(size_t i, float value) {
    if (f32_result_)
      static_cast<float*>(at_.result)[i] = value;
    else
      static_cast<bf16*>(at_.result)[i] = bf16(value);
  }

  /// The extents of a dimension that is not there are 1.
  static int64_t extent(const std::array<int64_t, 3>& of, int dim, int spatial) {
    return dim < spatial ? of[static_cast<size_t>(dim)] : 1;
  }
  /// Calls fn with the positions in x, w and y, without channels, of all pairs that meet.
  template <class Fn>
  void for_each_tap(Fn fn) const {
    const auto e = [&](const std::array<int64_t, 3>& of, int d) {
      return extent(of, d, c_.spatial);
    };
    const auto y_count = static_cast<int64_t>(spatial_elements(c_.out)),
               taps = static_cast<int64_t>(spatial_elements(c_.window)),
               x_count = static_cast<int64_t>(spatial_elements(c_.in));
    for (int64_t n = 0; n < c_.samples; ++n)
      for (int64_t o = 0; o < y_count; ++o)
        for (int64_t tap = 0; tap < taps; ++tap) {
          int64_t x = 0, o_rest = o, t_rest = tap;
          int64_t o_of[3], t_of[3];
          for (int d = 2; d >= 0; --d) {
            o_of[d] = o_rest % e(c_.out, d), o_rest /= e(c_.out, d);
            t_of[d] = t_rest % e(c_.window, d), t_rest /= e(c_.window, d);
          }
          bool inside = true;
          for (int d = 0; d < c_.spatial; ++d) {
            const auto at = static_cast<size_t>(d);
            const int64_t i = o_of[d] * c_.stride[at] - c_.pad_low[at] + t_of[d] * c_.dilation[at];
            inside &= 0 <= i && i < c_.in[at];
            x = x * c_.in[at] + i;
          }
          if (inside) fn(n * x_count + x, tap, n * y_count + o);
        }
  }

  std::vector<double> sums(const std::vector<double>& first,
                           const std::vector<double>& second) const {
    std::vector<double> result(elements(c_.makes));
    const int64_t taps = static_cast<int64_t>(spatial_elements(c_.window)),
                  inputs = c_.inputs / c_.groups, outputs = c_.outputs / c_.groups;
    if (at_.bias)
      for (size_t i = 0; i < result.size(); ++i)
        result[i] = at_.bias[i % static_cast<size_t>(c_.outputs)];
    for_each_tap([&](int64_t x_at, int64_t tap, int64_t y_at) {
      for (int64_t k = 0; k < c_.outputs; ++k)
        for (int64_t c = 0; c < inputs; ++c) {
          const auto x = static_cast<size_t>(x_at * c_.inputs + k / outputs * inputs + c),
                     w = static_cast<size_t>((k * taps + tap) * inputs + c),
                     y = static_cast<size_t>(y_at * c_.outputs + k);
          if (c_.makes == LayerProduct::y)
            result[y] += first[x] * second[w];
          else if (c_.makes == LayerProduct::x)
            result[x] += first[y] * second[w];
          else
            result[w] += first[x] * second[y];
        }
    });
    return result;
  }

  LibraryConvolution c_;
  bool f32_result_;
  LibraryOperands at_;
  bool wrong_, restless_, coarse_;
  std::shared_ptr<int> runs_;
};

/// Offers the same ways for all convolutions and, with " dense" behind the name, all dense layers.
/// Without a way it fails when it is asked.
class StandInLibraries final : public Libraries {
 public:
  explicit StandInLibraries(std::vector<LibraryWay> ways = {{.name = "stand_in:1", .refusal = {}}},
                            std::string versions = "stand-in 1.0")
      : ways_(std::move(ways)), versions_(std::move(versions)) {}

  bool any() const override { return true; }
  std::string versions() const override { return versions_; }
  std::vector<LibraryWay> ways(const LibraryConvolution&) override {
    if (ways_.empty()) throw DeviceError("stand-in: it cannot be asked");
    return ways_;
  }
  std::vector<LibraryWay> ways(const LibraryDense&) override {
    std::vector<LibraryWay> ways = this->ways(LibraryConvolution{});
    for (LibraryWay& way : ways)
      if (!way.name.empty()) way.name += " dense";
    return ways;
  }
  std::unique_ptr<LibraryCall> call(const LibraryConvolution& convolution,
                                    const std::string& way) override {
    return std::make_unique<Call>(*this, convolution, false, bytes_of(way), way);
  }
  std::unique_ptr<LibraryCall> call(const LibraryDense& d, const std::string& way) override {
    CHECK(!d.bias || d.type != LibraryType::bf16 || d.f32_result,
          "a bias for a result of 16 bits, which cuBLASLt refuses");
    const LibraryConvolution c{.makes = d.makes,
                               .type = d.type,
                               .spatial = 2,
                               .samples = d.rows,
                               .inputs = d.inputs,
                               .outputs = d.outputs,
                               .in = {1, 1},
                               .out = {1, 1},
                               .window = {1, 1},
                               .stride = {1, 1},
                               .dilation = {1, 1}};
    return std::make_unique<Call>(*this, c, d.f32_result,
                                  bytes_of(way.substr(0, way.rfind(" dense"))), way);
  }

  /// Returns how often each way was put on a stream.
  const std::map<std::string, int>& puts() const { return puts_; }

 private:
  class Call final : public LibraryCall {
   public:
    Call(StandInLibraries& of, const LibraryConvolution& convolution, bool f32_result,
         size_t workspace, std::string way)
        : of_(of), convolution_(convolution), f32_result_(f32_result), workspace_(workspace),
          way_(std::move(way)) {}
    void put(Stream& stream, const LibraryOperands& operands) override {
      ++of_.puts_[way_];
      check_alignment(operands);
      if (way_.find("failing") != way_.npos) throw DeviceError("stand-in: it cannot be put");
      if (workspace_ > 0) stream.fill(operands.workspace, std::byte{0xFF}, workspace_);
      stream.host(
          std::make_shared<StandInProduct>(convolution_, f32_result_, operands, way_, runs_));
    }

   private:
    void check_alignment(const LibraryOperands& operands) const {
      const auto check = [&](const void* address, uintptr_t bytes) {
        CHECK(reinterpret_cast<uintptr_t>(address) % bytes == 0, "{}: {} is not a multiple of {}",
              way_, address, bytes);
      };
      for (const void* const address :
           {operands.first, operands.second, static_cast<const void*>(operands.bias),
            static_cast<const void*>(operands.result)})
        check(address, 16);
      if (workspace_ > 0) check(operands.workspace, 256);
    }

    StandInLibraries& of_;
    LibraryConvolution convolution_;
    bool f32_result_;
    size_t workspace_;
    std::string way_;
    std::shared_ptr<int> runs_ = std::make_shared<int>(0);
  };

  size_t bytes_of(const std::string& way) const {
    const auto at = std::ranges::find(ways_, way, &LibraryWay::name);
    if (at == ways_.end()) throw DeviceError("stand-in: there is no way " + way);
    return at->workspace_bytes;
  }

  std::vector<LibraryWay> ways_;
  std::string versions_;
  std::map<std::string, int> puts_;
};

}  // namespace tutti::device
