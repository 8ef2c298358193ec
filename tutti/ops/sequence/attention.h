#pragma once
// Attention of sequences (Vaswani et al. 2017) as one op: the scores of all pairs of positions are
// never stored. A head h of D channels:
//   s[i, j] = scale * sum over d of q[h D + d, i] k[g D + d, j]
//   y[h D + d, i] = sum over the visible j of p[i, j] v[g D + d, j],  p[i, :] = softmax(s[i, :])
// where key head g serves heads / key_heads heads (grouped queries, Ainslie et al. 2023). Forward
// keeps the logarithm of each row's sum; backward computes the scores again from it. In training
// probabilities may be left out (dropout after the softmax, as in BERT and GPT-2):
//   y[h D + d, i] = sum over j of keep[i, j] p[i, j] v[g D + d, j],  keep = 0 or 1 / (1 - dropout)
// where keep is a function of (seed, step, replica, sample, layer, head, row, column): the mask is
// not stored, and does not depend on how heads are dealt to ranks, how tiles are cut or how often
// it is computed. With bf16 sequences the factors of products are bf16 and sums are f32, as in
// FlashAttention (Dao et al. 2022): keep exp(s - the row's greatest s) is rounded before it is
// multiplied by v, keep p before dy, and ds = p (keep dp - sum of dy y) before k and q.

#include "tutti/graph/graph.h"
#include "tutti/ops/dropout.h"

namespace tutti::ops {

/// The keys that a query sees, besides the restriction by `causal`.
enum class AttentionMask : uint8_t {
  none,
  segments,  ///< self-attention, i32 [N, T]: keys with the query's number, which is 0 or more
  keys,      ///< i32 [N, T of the keys]: keys whose number is 0 or more
};
std::string_view name_of(AttentionMask mask);

/// How q, k and v are passed: each as its own input, or one after the other in the channels of one
/// input.
enum class AttentionInputs : uint8_t { separate, q_and_kv, packed };
std::string_view name_of(AttentionInputs inputs);

struct AttentionAttributes {
  int64_t heads = 1, key_heads = 1;
  bool causal = false;  ///< position i sees positions up to i; a shorter q has the last ones
  float scale = 0;      ///< above 0; 0: 1 / sqrt(D)
  AttentionMask mask = AttentionMask::none;
  AttentionInputs inputs = AttentionInputs::packed;
  float dropout = 0;       ///< probability of leaving a key out; below 1
  uint32_t salt = 0;       ///< names the layer
  int64_t first_head = 0;  ///< index of the first of these heads among all ranks' heads
  bool whole =
      false;  ///< the team shares the heads of all samples (ops/fusion/fuse.h, share_in_team)

  size_t sequences() const {
    return inputs == AttentionInputs::packed ? 1 : inputs == AttentionInputs::q_and_kv ? 2 : 3;
  }
  std::string to_string() const;
  Walk walk() const { return whole ? Walk::whole : Walk::per_sample; }
};

/// The random bits behind `keep`: 16 bits for each key. The bits of 128 keys of a query come from
/// 16 blocks of numbers: key j uses block j % 16, of which its group of 16 keys has half a number.
constexpr int64_t kKeepKeys = 128;
inline SampleKey keep_key(SampleKey sample, int64_t head) {
  sample.salt ^= static_cast<uint32_t>(head + 1) * 0x9E3779B9u;
  return sample;
}
/// Returns the first block for the keys [group * kKeepKeys, ...) of a query. REQUIRES: fewer than
/// 2^35 pairs of queries and keys.
inline uint32_t keep_block(int64_t query, int64_t group, int64_t keys) {
  return static_cast<uint32_t>((query * ((keys + kKeepKeys - 1) / kKeepKeys) + group) * 16);
}
/// A key is left out where its 16 bits are below this threshold.
inline uint32_t keep_threshold(float dropout) {
  return static_cast<uint32_t>(static_cast<double>(dropout) * 0x1p16 + 0.5);
}
/// Returns the factor for the probabilities of the keys that stay.
inline float keep_factor(float dropout) {
  return static_cast<float>(0x1p16 / (0x1p16 - keep_threshold(dropout)));
}

/// Tells where q, k and v lie among the inputs, and what follows from their shapes.
struct AttentionShape {
  struct Part {
    size_t input = 0;
    int64_t first = 0;  ///< first channel
  };
  Part q, k, v;
  int64_t width = 0;  ///< channels of a head, D
  int64_t queries = 0, keys = 0;
  float scale = 0;
  /// REQUIRES: shapes that Attention::infer accepts.
  static AttentionShape of(const AttentionAttributes& a, std::span<const Shape> sequences);
};

/// (qkv [N, (heads + 2 key_heads) D, T] | q, kv [N, 2 key_heads D, S] | q [N, heads D, T], k and v
/// [N, key_heads D, S]; the mask where there is one) -> (y [N, heads D, T], the logarithm of each
/// row's sum of exp(s), f32 [N, heads, T]). A query that sees no key gets 0, and infinity as its
/// logarithm.
class Attention : public Op {
 public:
  explicit Attention(AttentionAttributes attributes) : a_(attributes) {}
  const AttentionAttributes& attention() const { return a_; }
  std::string_view name() const override { return "attention"; }
  std::string attributes() const override { return a_.to_string(); }
  Walk walk(Types) const override { return a_.walk(); }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  double flop(Types in, Types out) const override;

 private:
  AttentionAttributes a_;
};

/// (dy, y, logarithms, inputs of Attention) -> gradients of its sequences.
class AttentionGrad : public Op {
 public:
  explicit AttentionGrad(AttentionAttributes attributes) : a_(attributes) {}
  const AttentionAttributes& attention() const { return a_; }
  std::string_view name() const override { return "attention_grad"; }
  std::string attributes() const override { return a_.to_string(); }
  Walk walk(Types) const override { return a_.walk(); }
  std::vector<ValueType> infer(Types in) const override;
  double flop(Types in, Types out) const override;

 private:
  AttentionAttributes a_;
};

}  // namespace tutti::ops
