#include "tutti/models/block/sequence_encoder.h"

namespace tutti::models {
namespace {

constexpr int64_t kUsualTokens = 256;  // used where no field tells the number

struct EmbeddedSequence {
  Value x, padding;   ///< [N, width, positions], i32 [N, positions] or invalid
  int64_t piece = 1;  ///< samples per position
};

Value embedded_signals(ModelBuilder& model, const EncoderSpec& encoder, int64_t piece) {
  const Value signal = model.input();
  const Shape& x = model.graph().shape(signal);
  require(
      x.rank() == 3,
      "model '{}' reads sequences of channels at samples, [C, T], and a sample of '{}' is {}: "
      "'permute 1 0' in data.transforms makes it of [T, C], 'as 1 T' in data.fields of T numbers",
      model.spec().name, model.spec().input_field,
      Shape(std::span(x.begin() + 1, x.end())).to_string());
  if (x[2] % piece != 0)
    throw ConfigError(fmt::format(
        "model '{}': pieces of {} do not fill sequences of {} samples: choose another model.kernel",
        model.spec().name, piece, x[2]));
  return ops::conv(model.graph(), "embed.proj", signal,
                   {.out_channels = encoder.width,
                    .kernel = {piece, 1, 1},
                    .stride = {piece, 1, 1},
                    .bias = true});
}

Value embedded_tokens(ModelBuilder& model, Value tokens, int64_t vocabulary,
                      const EncoderSpec& encoder) {
  const Value weight = model.graph().parameter("embedding.weight", {vocabulary, encoder.width, 1},
                                               encoder_init(Init::Stored::matrix));
  return ops::lookup(model.graph(), "embedding.lookup", weight, tokens, model.spec().activations);
}

int64_t vocabulary_of(const ModelSpec& spec) {
  const int64_t known = input_named(spec, spec.input_field).classes;
  if (known > 0) return known;
  if (spec.inputs.empty()) return kUsualTokens;
  throw ConfigError(
      fmt::format("model '{}' reads tokens, and nothing says how many there are: 'classes N' in "
                  "the line of '{}' in data.fields",
                  spec.name, spec.input_field));
}

bool has_padding(const ModelSpec& spec) {
  return std::ranges::find(spec.inputs, kPaddingField, &ModelField::name) != spec.inputs.end();
}

Value padding_of(ModelBuilder& model, int64_t positions) {
  const Shape sample = input_named(model.spec(), kPaddingField).sample;
  require(sample == Shape{positions},
          "model '{}': the field '{}' has {}, and there are {} positions: it needs a "
          "whole number for each, below 0 where there is nothing",
          model.spec().name, kPaddingField, sample, positions);
  return model.documents(kPaddingField);
}

EmbeddedSequence embedded(ModelBuilder& model, SequenceKind kind, const EncoderSpec& encoder) {
  EmbeddedSequence sequence;
  if (kind == SequenceKind::signals) {
    sequence.piece = std::max<int64_t>(model.spec().kernel, 1);
    sequence.x = embedded_signals(model, encoder, sequence.piece);
  } else {
    const int64_t vocabulary = vocabulary_of(model.spec());
    sequence.padding = model.tokens(model.spec().input_field, vocabulary);
    sequence.x = embedded_tokens(model, sequence.padding, vocabulary, encoder);
  }
  if (has_padding(model.spec()))
    sequence.padding = padding_of(model, model.graph().shape(sequence.x)[2]);
  sequence.x = ops::add_sinusoids(model.graph(), "positions", sequence.x);
  sequence.x =
      ops::dropout(model.graph(), "embed.dropout", sequence.x, encoder.dropout, encoder.mode);
  return sequence;
}

/// Returns [N, width]: a learned query's attention over all positions.
Value pooled(Graph& graph, const EmbeddedSequence& sequence, const EncoderSpec& encoder) {
  const int64_t width = encoder.width;
  const Value query = graph.parameter("pool.query", {1, 1, width}, encoder_init());
  const Value one = ops::slice(graph, "pool.place", sequence.x, {{0, width}, {0, 1}});
  const Value q = ops::slice(graph, "pool.q", ops::prepend_token(graph, "pool.token", one, query),
                             {{0, width}, {0, 1}});
  std::vector<Value> in{q, encoder_linear(graph, "pool.kv", sequence.x, 2 * width)};
  ops::AttentionAttributes a{
      .heads = encoder.heads, .key_heads = encoder.heads, .inputs = ops::AttentionInputs::q_and_kv};
  if (sequence.padding.valid()) {
    a.mask = ops::AttentionMask::keys;
    in.push_back(sequence.padding);
  }
  return ops::reshape(graph, "pool", ops::attention(graph, "pool.attn", in, a), {width});
}

/// Returns [N, outputs, samples].
Value at_samples(Graph& graph, const EmbeddedSequence& sequence, int64_t outputs) {
  if (sequence.piece == 1) return encoder_linear(graph, "head", sequence.x, outputs);
  return ops::conv_transpose(graph, "head", sequence.x,
                             {.out_channels = outputs,
                              .kernel = {sequence.piece, 1, 1},
                              .stride = {sequence.piece, 1, 1},
                              .bias = true,
                              .init = Init::Kind::truncated_normal,
                              .init_value = kEncoderDeviation,
                              .bias_init = Init::Kind::zeros});
}

/// Returns the outputs at each sample; 0: the outputs describe the whole sequence.
int64_t outputs_at_samples(const ModelBuilder& model, int64_t samples) {
  const Objective& objective = model.objectives().front();
  if (*objective.task == TaskKind::segment) return model.spec().classes;
  const Shape target = target_named(model.spec(), objective.target).sample;
  const bool at_each =
      *objective.task == TaskKind::regress && target.rank() == 2 && target[1] == samples;
  return at_each ? target[0] : 0;
}

}  // namespace

void build_sequence_encoder(ModelBuilder& model, SequenceKind kind) {
  const EncoderSpec encoder = with_sizes(kSequenceEncoder, model.spec());
  require_whole_heads(model.spec().name, encoder);
  require(encoder.width % 2 == 0,
          "model '{}': a width of {} is odd; positions are pairs of sine and cosine",
          model.spec().name, encoder.width);
  Graph& graph = model.graph();
  EmbeddedSequence sequence = embedded(model, kind, encoder);
  sequence.x = ops::layer_norm(
      graph, "norm", encoder_layers(graph, sequence.x, sequence.padding, encoder), kEncoderNorm);
  const int64_t samples = graph.shape(sequence.x)[2] * sequence.piece;
  if (const int64_t outputs = outputs_at_samples(model, samples); outputs > 0)
    return model.predict(at_samples(graph, sequence, outputs));
  model.predict(ops::dense(graph, "head", pooled(graph, sequence, encoder),
                           {.outputs = model.spec().classes,
                            .init = Init::Kind::truncated_normal,
                            .init_value = kEncoderDeviation,
                            .bias_init = Init::Kind::zeros}));
}

}  // namespace tutti::models
