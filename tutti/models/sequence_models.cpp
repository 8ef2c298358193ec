#include "tutti/models/sequence_models.h"

#include "tutti/models/block/sequence_encoder.h"
#include "tutti/models/network/gpt2.h"
#include "tutti/models/network/llama.h"
#include "tutti/models/network/transformer.h"
#include "tutti/models/network/vit.h"

namespace tutti::models {
namespace {

struct Gpt2Size {
  const char* name;
  int64_t depth, width, heads;
};

ModelInfo gpt2(const Gpt2Size& size) {
  return {.name = size.name,
          .description = fmt::format("GPT-2 (Radford et al. 2019): a language model of {} layers, "
                                     "{} channels, {} heads",
                                     size.depth, size.width, size.heads),
          .task = TaskKind::language,
          .input = {1024},
          .classes = 50257,
          .takes_width = true,
          .takes_hidden = true,
          .takes_dropout = true,
          .takes_attention_dropout = true,
          .takes_depth = true,
          .takes_heads = true,
          .takes_context = true,
          .inputs_if_there = {"segments"},
          .build = [size](ModelBuilder& model) {
            build_gpt2(model, {.depth = size.depth, .width = size.width, .heads = size.heads});
          }};
}

struct LlamaSize {
  const char *name, *of;
  LlamaSpec own;
  int64_t context;
};

ModelInfo llama(const LlamaSize& size) {
  return {.name = size.name,
          .description = fmt::format("{}: a language model with RMS norms, rotated queries and "
                                     "keys and gated hidden layers",
                                     size.of),
          .task = TaskKind::language,
          .input = {size.context},
          .classes = size.own.vocabulary,
          .takes_width = true,
          .takes_hidden = true,
          .takes_depth = true,
          .takes_heads = true,
          .takes_key_heads = true,
          .takes_rotary_base = true,
          .takes_tied = true,
          .inputs_if_there = {"segments"},
          .build = [own = size.own](ModelBuilder& model) { build_llama(model, own); }};
}

struct VitSize {
  const char* name;
  int64_t width, heads;
};

ModelInfo vit(const VitSize& size) {
  return {.name = size.name,
          .description = fmt::format("vision transformer (Dosovitskiy et al. 2021) of 12 layers, "
                                     "{} channels, {} heads, patches of 16 x 16 (model.kernel)",
                                     size.width, size.heads),
          .input = {3, 224, 224},
          .classes = 1000,
          .takes_width = true,
          .takes_hidden = true,
          .takes_kernel = true,
          .takes_dropout = true,
          .takes_attention_dropout = true,
          .takes_depth = true,
          .takes_heads = true,
          .prediction = [size](Graph& graph, Value x, const ModelSpec& spec) {
            VitSpec own{
                .classes = spec.classes,
                .encoder = with_sizes(EncoderSpec{.width = size.width, .heads = size.heads}, spec)};
            if (spec.kernel > 0) own.patch = spec.kernel;
            return vit_logits(graph, x, own);
          }};
}

ModelInfo transformer(const char* name, const TransformerSpec& size) {
  return {
      .name = name,
      .description = fmt::format("Transformer (Vaswani et al. 2017), for translation: an encoder "
                                 "and a decoder of {} layers, {} channels, {} heads",
                                 size.depth, size.width, size.heads),
      .task = TaskKind::language,
      .input = {256},
      .classes = 37000,
      .takes_width = true,
      .takes_hidden = true,
      .takes_dropout = true,
      .takes_attention_dropout = true,
      .takes_depth = true,
      .takes_heads = true,
      .takes_embeddings = true,
      .more_inputs = {"tokens"},
      .build = [size](ModelBuilder& model) { build_transformer(model, size); }};
}

ModelInfo sequence_encoder(SequenceKind kind) {
  const bool signals = kind == SequenceKind::signals;
  const char* const of = signals ? "signals, channels at samples" : "tokens, such as bases";
  return {.name = signals ? "sequence-encoder" : "token-encoder",
          .description = fmt::format("encoder of sequences of {}: 4 transformer layers, 128 "
                                     "channels, 4 heads; a class or numbers of a sequence, or at "
                                     "each of its samples",
                                     of),
          .input = signals ? Shape{8, 256} : Shape{256},
          .takes_width = true,
          .takes_hidden = true,
          .takes_kernel = signals,
          .takes_dropout = true,
          .takes_attention_dropout = true,
          .takes_depth = true,
          .takes_heads = true,
          .inputs_if_there = {kPaddingField},
          .build = [kind](ModelBuilder& model) { build_sequence_encoder(model, kind); }};
}

}  // namespace

std::vector<ModelInfo> models_of_sequences() {
  return {gpt2({"gpt2", 12, 768, 12}),
          gpt2({"gpt2-medium", 24, 1024, 16}),
          gpt2({"gpt2-large", 36, 1280, 20}),
          gpt2({"gpt2-xl", 48, 1600, 25}),
          llama({"llama", "Llama of any size, and without sizes Llama 2's 7B", {}, 4096}),
          llama({"tinyllama",
                 "TinyLlama, 1.1B",
                 {.depth = 22, .width = 2048, .heads = 32, .key_heads = 4},
                 2048}),
          llama({"llama3",
                 "Llama 3, 8B",
                 {.vocabulary = 128256, .key_heads = 8, .hidden = 14336, .base = 500000},
                 8192}),
          vit({"vit-ti", 192, 3}),
          vit({"vit-s", 384, 6}),
          vit({"vit-b", 768, 12}),
          sequence_encoder(SequenceKind::signals),
          sequence_encoder(SequenceKind::tokens),
          transformer("transformer-base", {}),
          transformer("transformer-big",
                      {.width = 1024, .heads = 16, .hidden = 4096, .dropout = 0.3f})};
}

}  // namespace tutti::models
