#include "tutti/mlsl/quantizer.h"

#include <dlfcn.h>

namespace tutti::mlsl {
namespace {

std::string text_of(const char* text, const char* what) {
  demand(text != nullptr && *text != '\0', "SetQuantizationParams: {} is missing", what);
  return text;
}

void check(int result, const std::string& function) {
  if (result != 0)
    throw CommError(fmt::format("the quantisation library's function {} failed with code {}",
                                function, result));
}

// The three vectors of tiles in a QuantizedSum's window.
enum Vector : size_t { kSent, kReceived, kSums };

}  // namespace

Quantizer::Quantizer(const api::QuantParams& params)
    : path_(text_of(params.lib_path, "lib_path")),
      quantise_name_(text_of(params.quant_buffer_func_name, "quant_buffer_func_name")),
      dequantise_name_(text_of(params.dequant_buffer_func_name, "dequant_buffer_func_name")),
      reduce_sum_name_(text_of(params.reduce_sum_func_name, "reduce_sum_func_name")),
      params_{path_.data(),
              quantise_name_.data(),
              dequantise_name_.data(),
              reduce_sum_name_.data(),
              params.block_size,
              params.elem_in_block},
      library_(dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL), &dlclose) {
  demand(params.block_size > 0 && params.elem_in_block > 0,
         "SetQuantizationParams: blocks of {} bytes for {} elements", params.block_size,
         params.elem_in_block);
  if (!library_) throw ConfigError(fmt::format("SetQuantizationParams: {}", dlerror()));
  quantise_ = find<Quantise>("quantises", quantise_name_);
  dequantise_ = find<Dequantise>("dequantises", dequantise_name_);
  reduce_sum_ = find<ReduceSum>("adds", reduce_sum_name_);
}

template <class Function>
Function* Quantizer::find(const char* what, const std::string& name) const {
  void* const function = dlsym(library_.get(), name.c_str());
  demand(function != nullptr, "SetQuantizationParams: {} has no function {}, which {}", path_, name,
         what);
  return reinterpret_cast<Function*>(function);
}

void Quantizer::encode(const float* values, size_t count, float* residual,
                       std::byte* blocks) const {
  constexpr int kFloat = 2;
  constexpr size_t kRatio = 4;
  constexpr int kMethod = 1;  // dynamic fixed point
  check(quantise_(values, blocks, count, residual, kFloat, kRatio, kMethod), quantise_name_);
}

void Quantizer::add(const std::byte* blocks, std::byte* sum, size_t count) const {
  check(reduce_sum_(blocks, sum, count), reduce_sum_name_);
}

void Quantizer::decode(const std::byte* blocks, size_t count, float* values) const {
  check(dequantise_(blocks, values, count), dequantise_name_);
}

QuantizedSum::QuantizedSum(Group& group, const Quantizer& quantizer, size_t count, size_t part,
                           bool everywhere)
    : Exchange(group), quantizer_(quantizer), count_(count), part_(part),
      tile_bytes_(quantizer.bytes(quantizer.blocks(part))), residuals_(count),
      window_(
          group.allocate((everywhere ? 3 : 2) * static_cast<size_t>(group.size()) * tile_bytes_)),
      tiles_(group, exchange_of(comm::Collective::all_to_all, kSent, kReceived)) {
  if (everywhere)
    sums_ = std::make_unique<Planned>(group,
                                      exchange_of(comm::Collective::allgather, kReceived, kSums));
}

comm::CollectiveSpec QuantizedSum::exchange_of(comm::Collective kind, size_t from,
                                               size_t to) const {
  comm::CollectiveSpec spec;
  spec.name = "quantised gradient";
  spec.kind = kind;
  spec.element = comm::Element::byte;
  spec.count = static_cast<size_t>(group().size()) * tile_bytes_;
  spec.input = tile(from, 0);
  spec.output = tile(to, 0);
  return spec;
}

void QuantizedSum::start(const float* values) {
  wait();
  const std::span<float> residual = residuals_.of(values);
  for (size_t p = 0; p < static_cast<size_t>(group().size()); ++p)
    if (const size_t n = floats_of(p); n > 0)
      quantizer_.encode(values + p * part_, n, residual.data() + p * part_, tile(kSent, p));
  added_ = false;
  enter(bytes());
  tiles_.start();
}

bool QuantizedSum::advance() {
  if (!added_) {
    if (!tiles_.test()) return false;
    add_up();
    added_ = true;
    if (sums_) sums_->start();
  }
  return !sums_ || sums_->test();
}

// Into the tile that rank 0 has sent.
void QuantizedSum::add_up() {
  const size_t blocks = quantizer_.blocks(floats_of(static_cast<size_t>(group().index())));
  if (blocks == 0) return;
  for (size_t p = 1; p < static_cast<size_t>(group().size()); ++p)
    quantizer_.add(tile(kReceived, p), tile(kReceived, 0), blocks);
}

void QuantizedSum::deliver(float* values) const {
  if (!sums_) {
    if (const size_t n = floats_of(static_cast<size_t>(group().index())); n > 0)
      quantizer_.decode(tile(kReceived, 0), n, values);
    return;
  }
  for (size_t p = 0; p < static_cast<size_t>(group().size()); ++p)
    if (const size_t n = floats_of(p); n > 0)
      quantizer_.decode(tile(kSums, p), n, values + p * part_);
}

}  // namespace tutti::mlsl
