// Tokens, positions, layer norms and the loss over a vocabulary.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tutti/backend/reference/rules.h"
#include "tutti/ops/rank_sums.h"
#include "tutti/ops/sequence/layer_norm.h"
#include "tutti/ops/sequence/lookup.h"
#include "tutti/ops/sequence/token_loss.h"
#include "tutti/ops/sequence/token_slice.h"

namespace tutti::backend {
namespace {

bool is_token(double number, int64_t vocabulary) {
  return number >= 0 && number < static_cast<double>(vocabulary);
}

/// Calls f(row, element of the vectors [N, C, T], channel) for each token that has one of these
/// rows.
template <class F>
void for_each_token(const PlainTensor& tokens, graph::Rows rows, int64_t channels, F f) {
  const int64_t positions = tokens.shape()[1];
  for (int64_t i = 0; i < tokens.size(); ++i) {
    const auto row = tokens[i] - static_cast<double>(rows.first);
    if (!is_token(row, rows.count())) continue;
    for (int64_t c = 0; c < channels; ++c)
      f(static_cast<int64_t>(row), (i / positions * channels + c) * positions + i % positions, c);
  }
}

void look_tokens_up(const RuleCall& call, int64_t first) {
  const PlainTensor& w = call.in[0];
  const int64_t channels = w.shape()[1];
  call.out[0].fill(0);
  for_each_token(
      call.in[1], {first, first + w.shape()[0]}, channels,
      [&](int64_t row, int64_t at, int64_t c) { call.out[0][at] = w[row * channels + c]; });
}

void add_to_tokens(const RuleCall& call, bool adds, int64_t first) {
  PlainTensor& dw = call.out[0];
  const int64_t channels = dw.shape()[1];
  for (int64_t i = 0; i < dw.size(); ++i) dw[i] = adds ? call.in[2][i] : 0;
  for_each_token(
      call.in[1], {first, first + dw.shape()[0]}, channels,
      [&](int64_t row, int64_t at, int64_t c) { dw[row * channels + c] += call.in[0][at]; });
}

void add_positions(const RuleCall& call, int64_t first) {
  const PlainTensor& x = call.in[0];
  const int64_t channels = x.shape()[1], positions = x.shape()[2];
  for (int64_t i = 0; i < x.size(); ++i)
    call.out[0][i] =
        x[i] + call.in[1][(first + i % positions) * channels + i / positions % channels];
}

Rule add_positions_grad(const ops::AddPositionsGrad& op, const KernelRequest& request) {
  const int64_t first = op.first();
  const Shape dp = request.out[0].shape;
  const auto run = [first](const RuleCall& call) {
    const PlainTensor& dy = call.in[0];
    const int64_t channels = dy.shape()[1], positions = dy.shape()[2];
    for (int64_t i = 0; i < dy.size(); ++i)
      call.sums[static_cast<size_t>((first + i % positions) * channels +
                                    i / positions % channels)] += dy[i];
  };
  const auto finish = [](const RuleCall& call) {
    for (int64_t i = 0; i < call.out[0].size(); ++i)
      call.out[0][i] = call.sums[static_cast<size_t>(i)];
  };
  return {.run = run,
          .sums = static_cast<size_t>(dp.elements()),
          .finish = finish,
          .unbatched_in = {},
          .unbatched_out = {0}};
}

void prepend_token(const RuleCall& call) {
  const int64_t channels = call.in[0].shape()[1], positions = call.out[0].shape()[2];
  for (int64_t i = 0; i < call.out[0].size(); ++i) {
    const int64_t row = i / positions, t = i % positions;
    call.out[0][i] =
        t == 0 ? call.in[1][row % channels] : call.in[0][row * (positions - 1) + t - 1];
  }
}

/// Normalises one position's channels.
struct Normalised {
  double mean = 0, inverse = 0;  ///< 1 / sqrt(...)
  int64_t first, channels, stride;

  Normalised(const ops::LayerNormAttributes& a, const PlainTensor& x, int64_t position)
      : channels(x.shape()[1]), stride(x.shape().elements_from(2)) {
    first = position / stride * channels * stride + position % stride;
    if (a.kind == ops::LayerNormKind::layer)
      for (int64_t c = 0; c < channels; ++c) mean += x[at(c)] / static_cast<double>(channels);
    double squares = 0;
    for (int64_t c = 0; c < channels; ++c) squares += (x[at(c)] - mean) * (x[at(c)] - mean);
    inverse =
        1 / std::sqrt(squares / static_cast<double>(channels) + static_cast<double>(a.epsilon));
  }
  int64_t at(int64_t c) const { return first + c * stride; }
  double of(const PlainTensor& x, int64_t c) const { return (x[at(c)] - mean) * inverse; }
};

void normalise(const ops::LayerNormAttributes& a, const RuleCall& call) {
  const PlainTensor& x = call.in[0];
  for (int64_t p = 0; p < x.size() / x.shape()[1]; ++p) {
    const Normalised norm(a, x, p);
    for (int64_t c = 0; c < norm.channels; ++c)
      call.out[0][norm.at(c)] =
          norm.of(x, c) * call.in[1][c] + (a.has_beta() ? call.in[2][c] : 0.0);
  }
}

Rule normalise_grad(const ops::LayerNormGrad& op, const KernelRequest& request) {
  const ops::LayerNormAttributes a = op.norm();
  const int64_t channels = request.in[1].shape[1];
  const auto run = [a](const RuleCall& call) {
    const PlainTensor &dy = call.in[0], &x = call.in[1], &gamma = call.in[2];
    for (int64_t p = 0; p < x.size() / x.shape()[1]; ++p) {
      const Normalised norm(a, x, p);
      const auto count = static_cast<double>(norm.channels);
      double all = 0, along = 0;  // means of g and of g times the normalised values
      for (int64_t c = 0; c < norm.channels; ++c) {
        const double g = dy[norm.at(c)] * gamma[c];
        if (a.kind == ops::LayerNormKind::layer) all += g / count;
        along += g * norm.of(x, c) / count;
        call.sums[static_cast<size_t>(c)] += dy[norm.at(c)] * norm.of(x, c);
        call.sums[static_cast<size_t>(norm.channels + c)] += dy[norm.at(c)];
      }
      for (int64_t c = 0; c < norm.channels; ++c)
        call.out[0][norm.at(c)] =
            norm.inverse * (dy[norm.at(c)] * gamma[c] - all - norm.of(x, c) * along);
    }
  };
  const auto finish = [channels](const RuleCall& call) {
    for (size_t o = 1; o < call.out.size(); ++o)
      for (int64_t c = 0; c < channels; ++c)
        call.out[o][c] =
            call.sums[(o - 1) * static_cast<size_t>(channels) + static_cast<size_t>(c)];
  };
  Rule rule{.run = run,
            .sums = 2 * static_cast<size_t>(channels),
            .finish = finish,
            .unbatched_in = {},
            .unbatched_out = {1}};
  if (a.has_beta()) rule.unbatched_out.push_back(2);
  return rule;
}

void count_tokens(const RuleCall& call, int64_t vocabulary) {
  double found = 0;
  for (int64_t i = 0; i < call.in[0].size(); ++i) found += is_token(call.in[0][i], vocabulary);
  call.out[0][0] = std::max(found, 1.0);
}

/// The logits of one position, [N, V, T].
struct TokenLogits {
  const PlainTensor& x;
  int64_t vocabulary, positions, first;

  TokenLogits(const PlainTensor& logits, int64_t position)
      : x(logits), vocabulary(x.shape()[1]), positions(x.shape()[2]),
        first(position / positions * vocabulary * positions + position % positions) {}
  int64_t at(int64_t k) const { return first + k * positions; }
  double log_sum() const {
    double top = x[at(0)], sum = 0;
    for (int64_t k = 1; k < vocabulary; ++k) top = std::max(top, x[at(k)]);
    for (int64_t k = 0; k < vocabulary; ++k) sum += std::exp(x[at(k)] - top);
    return top + std::log(sum);
  }
};

void token_hits(const RuleCall& call) {
  for (int64_t i = 0; i < call.in[1].size(); ++i) {
    const TokenLogits logits(call.in[0], i);
    call.out[0][i] = 0;
    if (!is_token(call.in[1][i], logits.vocabulary)) continue;
    int64_t best = 0;
    for (int64_t k = 1; k < logits.vocabulary; ++k)
      if (logits.x[logits.at(k)] > logits.x[logits.at(best)]) best = k;
    call.out[0][i] = best == static_cast<int64_t>(call.in[1][i]);
  }
}

Rule token_loss(const ops::TokenLossAttributes& a) {
  const auto run = [a](const RuleCall& call) {
    const double s = a.label_smoothing;
    for (int64_t i = 0; i < call.in[1].size(); ++i) {
      const TokenLogits logits(call.in[0], i);
      call.out[1][i] = 0;
      if (!is_token(call.in[1][i], logits.vocabulary)) continue;
      const double log_sum = logits.log_sum();
      call.out[1][i] = log_sum - logits.x[logits.at(static_cast<int64_t>(call.in[1][i]))];
      double even = 0;
      for (int64_t k = 0; k < logits.vocabulary; ++k) even += log_sum - logits.x[logits.at(k)];
      call.sums[0] += (1 - s) * call.out[1][i] + s / static_cast<double>(logits.vocabulary) * even;
    }
  };
  const auto finish = [scale = a.scale](const RuleCall& call) {
    call.out[0][0] = scale * call.sums[0] / call.in[2][0];
  };
  return {.run = run, .sums = 1, .finish = finish, .unbatched_in = {2}, .unbatched_out = {0}};
}

void token_loss_grad(const ops::TokenLossAttributes& a, const RuleCall& call) {
  const double s = a.label_smoothing, factor = static_cast<double>(a.scale) / call.in[2][0];
  for (int64_t i = 0; i < call.in[1].size(); ++i) {
    const TokenLogits logits(call.in[0], i);
    const bool counts = is_token(call.in[1][i], logits.vocabulary);
    const auto y = static_cast<int64_t>(call.in[1][i]);
    const double log_sum = counts ? call.in[3][i] + logits.x[logits.at(y)] : 0;
    for (int64_t k = 0; k < logits.vocabulary; ++k)
      call.out[0][logits.at(k)] =
          counts ? factor * (std::exp(logits.x[logits.at(k)] - log_sum) -
                             s / static_cast<double>(logits.vocabulary) - (k == y ? 1 - s : 0))
                 : 0;
  }
}

void token_statistics(const ops::VocabularySlice& slice, const RuleCall& call) {
  for (int64_t i = 0; i < call.in[1].size(); ++i) {
    const TokenLogits logits(call.in[0], i);
    const int64_t positions = logits.positions,
                  first = i / positions * 3 * positions + i % positions;
    const bool counts = is_token(call.in[1][i], slice.all);
    const auto y = static_cast<int64_t>(call.in[1][i]) - slice.first;
    double sum = 0;
    for (int64_t k = 0; k < slice.count; ++k) sum += logits.x[logits.at(k)];
    call.out[0][first] = counts ? logits.log_sum() : 0;
    call.out[0][first + positions] =
        counts && y >= 0 && y < slice.count ? logits.x[logits.at(y)] : 0;
    call.out[0][first + 2 * positions] = counts ? sum : 0;
  }
}

void token_rivals(const ops::VocabularySlice& slice, const RuleCall& call) {
  for (int64_t i = 0; i < call.in[1].size(); ++i) {
    const TokenLogits logits(call.in[0], i);
    const int64_t positions = logits.positions,
                  first = i / positions * 3 * positions + i % positions;
    const bool counts = is_token(call.in[1][i], slice.all);
    const auto y = static_cast<int64_t>(call.in[1][i]) - slice.first;
    double before = std::numeric_limits<float>::lowest(), own = 0, behind = before;
    for (int64_t k = 0; k < slice.count; ++k) {
      const double x = logits.x[logits.at(k)];
      if (k < y) before = std::max(before, x);
      if (k == y) own = x;
      if (k > y) behind = std::max(behind, x);
    }
    call.out[0][first] = counts ? before : 0;
    call.out[0][first + positions] = counts ? own : 0;
    call.out[0][first + 2 * positions] = counts ? behind : 0;
  }
}

void token_hits_of_ranks(const ops::TokenHitsOfRanks& op, const RuleCall& call) {
  const int64_t positions = call.in[0].shape()[1];
  for (int64_t i = 0; i < call.in[0].size(); ++i) {
    const int64_t first = i / positions * 3 * positions + i % positions;
    double own = 0;
    for (size_t r = 1; r < call.in.size(); ++r) own += call.in[r][first + positions];
    bool hit = is_token(call.in[0][i], op.vocabulary());
    for (size_t r = 1; r < call.in.size(); ++r)
      hit = hit && call.in[r][first] < own && call.in[r][first + 2 * positions] <= own;
    call.out[0][i] = hit;
  }
}

Rule token_loss_of_ranks(const ops::TokenLossOfRanks& op) {
  const auto run = [op](const RuleCall& call) {
    const double s = op.loss().label_smoothing;
    const int64_t positions = call.in[1].shape()[1];
    for (int64_t i = 0; i < call.in[1].size(); ++i) {
      call.out[1][i] = call.out[2][i] = 0;
      if (!is_token(call.in[1][i], op.slice().all)) continue;
      const int64_t first = i / positions * 3 * positions + i % positions;
      double powers = 0, of_label = 0, sum = 0;
      const double top = call.in[3][first];
      for (size_t r = 3; r < call.in.size(); ++r) {
        powers += std::exp(call.in[r][first] - top);
        of_label += call.in[r][first + positions];
        sum += call.in[r][first + 2 * positions];
      }
      const double log_sum = top + std::log(powers);
      call.out[1][i] = log_sum - of_label;
      call.out[2][i] = log_sum;
      call.sums[0] += (1 - s) * (log_sum - of_label) +
                      s * (log_sum - sum / static_cast<double>(op.slice().all));
    }
  };
  const auto finish = [scale = op.loss().scale](const RuleCall& call) {
    call.out[0][0] = scale * call.sums[0] / call.in[2][0];
  };
  return {.run = run, .sums = 1, .finish = finish, .unbatched_in = {2}, .unbatched_out = {0}};
}

void token_loss_of_ranks_grad(const ops::TokenLossOfRanksGrad& op, const RuleCall& call) {
  const double s = op.loss().label_smoothing,
               factor = static_cast<double>(op.loss().scale) / call.in[2][0];
  for (int64_t i = 0; i < call.in[1].size(); ++i) {
    const TokenLogits logits(call.in[0], i);
    const bool counts = is_token(call.in[1][i], op.slice().all);
    const auto y = static_cast<int64_t>(call.in[1][i]) - op.slice().first;
    for (int64_t k = 0; k < op.slice().count; ++k)
      call.out[0][logits.at(k)] =
          counts ? factor * (std::exp(logits.x[logits.at(k)] - call.in[3][i]) -
                             s / static_cast<double>(op.slice().all) - (k == y ? 1 - s : 0))
                 : 0;
  }
}

void add_ranks(const ops::SumOfRanks& op, const RuleCall& call) {
  const PlainTensor& x = call.in[0];
  const auto ranks = static_cast<size_t>(op.group().ranks);
  const int64_t channels = x.shape()[1], positions = x.shape().elements_from(2);
  for (int64_t i = 0; i < x.size(); ++i) {
    double sum = op.bias() ? call.in[ranks][i / positions % channels] : 0.0;
    for (size_t r = 0; r < ranks; ++r) sum += call.in[r][i];
    call.out[0][i] = sum;
  }
}

}  // namespace

void register_sequence_rules(RuleTable& table) {
  table.add<ops::Lookup>(
      [](const ops::Lookup& op, const RuleCall& c) { look_tokens_up(c, op.first()); });
  table.add<ops::LookupGrad>([](const ops::LookupGrad& op, const RuleCall& c) {
    add_to_tokens(c, op.adds(), op.first());
  });
  table.add<ops::AddPositions>(
      [](const ops::AddPositions& op, const RuleCall& c) { add_positions(c, op.first()); });
  table.add<ops::AddPositionsGrad>(add_positions_grad);
  table.add<ops::PrependToken>(prepend_token);
  table.add<ops::LayerNorm>(
      [](const ops::LayerNorm& op, const RuleCall& c) { normalise(op.norm(), c); });
  table.add<ops::LayerNormGrad>(normalise_grad);
  table.add<ops::CountTokens>(
      [](const ops::CountTokens& op, const RuleCall& c) { count_tokens(c, op.vocabulary()); });
  table.add<ops::TokenHits>(token_hits);
  table.add<ops::TokenLoss>([](const ops::TokenLoss& op) { return token_loss(op.loss()); });
  table.add<ops::TokenLossGrad>(
      [](const ops::TokenLossGrad& op, const RuleCall& c) { token_loss_grad(op.loss(), c); });
  table.add<ops::TokenStatistics>(
      [](const ops::TokenStatistics& op, const RuleCall& c) { token_statistics(op.slice(), c); });
  table.add<ops::TokenRivals>(
      [](const ops::TokenRivals& op, const RuleCall& c) { token_rivals(op.slice(), c); });
  table.add<ops::TokenHitsOfRanks>(token_hits_of_ranks);
  table.add<ops::TokenLossOfRanks>(token_loss_of_ranks);
  table.add<ops::TokenLossOfRanksGrad>(token_loss_of_ranks_grad);
  table.add<ops::SumOfRanks>(add_ranks);
}

}  // namespace tutti::backend
