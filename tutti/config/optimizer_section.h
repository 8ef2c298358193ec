#pragma once
// The keys of [batch] and [optimizer]: values, and the rows that describe them (config_table.h).

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/config/config_words.h"
#include "tutti/ops/sequence/embedding.h"

namespace tutti::config {

struct BatchSection {
  int64_t local = 0;       ///< samples per batch of a replica; 0: global / (replicas * accumulate)
  int64_t global = 0;      ///< samples per update; 0: local * replicas * accumulate; both 0: 128
  int64_t accumulate = 1;  ///< batches per replica and update

  template <class Keys>
  static void keys(Keys& t) {
    using S = BatchSection;

    t.key(&S::local, "local",
          "Samples per batch of a replica. 0: batch.global / (replicas x batch.accumulate)")
        .at_least(0);
    t.key(&S::global, "global",
          "Samples of an update, over all replicas. 0: batch.local x replicas x batch.accumulate")
        .at_least(0);
    t.key(&S::accumulate, "accumulate",
          "Batches of each replica whose gradients one update adds up, for larger batches than fit "
          "in memory. Steps are updates")
        .between(1, 65536);
  }
};

struct OptimizerSection {
  OptimizerKind name = OptimizerKind::sgd;
  double lr = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  std::vector<std::string> exclude{};  ///< groups without weight decay and without the trust ratio
                                       ///< of LARS and LAMB: "bias", "norm"
  std::vector<std::string> decay{}, rates{};  ///< "PATTERN: VALUE"
  double clip_norm = 0;                       ///< 0: the gradient is not clipped
  double clip_value = 0;                      ///< 0: its elements are not clipped
  double ema = 0;                             ///< 0: weights are not averaged
  int64_t ema_from = 0;                       ///< steps
  double beta1 = 0.9;
  double beta2 = 0.999;
  double rho = 0.9;
  double eps = 1e-8;
  double trust = 0.001;
  ops::TableRule::Kind tables = ops::TableRule::Kind::sgd;
  double tables_eps = 1e-10;

  template <class Keys>
  static void keys(Keys& t) {
    using S = OptimizerSection;

    t.key(&S::name, "name", "Update rule");
    t.key(&S::lr, "lr", "Learning rate; the highest one that the schedule reaches").at_least(0);
    t.key(&S::momentum, "momentum", "Momentum")
        .between(0, 1)
        .only_with("optimizer.name", {"sgd", "lars"});
    t.key(&S::nesterov, "nesterov", "Nesterov's form of momentum")
        .only_with("optimizer.name", {"sgd"});
    t.key(&S::weight_decay, "weight_decay",
          "Added to the gradient as weight_decay * w; decoupled in adamw; added to the direction "
          "in lamb")
        .at_least(0);
    t.key(&S::exclude, "exclude",
          "Parameter groups without weight decay and without the trust ratio of lars and lamb")
        .one_of({"bias", "norm"})
        .only_with("optimizer.weight_decay")
        .only_with("optimizer.decay")
        .only_with("optimizer.name", {"lars", "lamb"});
    t.key(
        &S::decay, "decay",
        "Weight decay of some parameters, lines as \"fc*.weight: 0.01\": a shell pattern over "
        "names and the value that they have instead of optimizer.weight_decay. The first line that "
        "fits counts; optimizer.exclude goes before it");
    t.key(&S::rates, "rates",
          "Factors on the learning rate of some parameters, lines as \"fc.*: 10\", likewise");
    t.key(&S::clip_norm, "clip_norm",
          "Largest norm of the gradient, over all trained parameters: a longer one is made as "
          "short, times clip_norm / (norm + 1e-6) as in PyTorch's clip_grad_norm_. 0: none")
        .at_least(0);
    t.key(&S::clip_value, "clip_value",
          "Largest size of an element of the gradient: each is brought into [-clip_value, "
          "clip_value], after clip_norm and before weight decay. 0: none")
        .at_least(0)
        .only_with("optimizer.name", {"sgd", "adam", "adamw", "rmsprop"});
    t.key(&S::ema, "ema",
          "Evaluate and keep a moving average of the weights: after each update it goes 1 - ema of "
          "the way towards them, 0.999 for example. 0: none")
        .between(0, 0.9999999);
    t.key(&S::ema_from, "ema_from", "First steps in which the average just is the weights")
        .at_least(0)
        .only_with("optimizer.ema");
    t.key(&S::beta1, "beta1", "Decay of the first moment")
        .between(0, 1)
        .only_with("optimizer.name", {"adam", "adamw", "lamb"});
    t.key(&S::beta2, "beta2", "Decay of the second moment")
        .between(0, 1)
        .only_with("optimizer.name", {"adam", "adamw", "lamb"});
    t.key(&S::rho, "rho", "Decay of the mean of squares")
        .between(0, 1)
        .only_with("optimizer.name", {"rmsprop"});
    t.key(&S::eps, "eps", "Added to the denominator; above 0 but with lars")
        .at_least(0)
        .only_with("optimizer.name", {"lars", "adam", "adamw", "lamb", "rmsprop"});
    t.key(&S::trust, "trust", "Trust coefficient")
        .at_least(0)
        .only_with("optimizer.name", {"lars"});
    t.key(&S::tables, "tables",
          "Update rule of tables, of which a step changes the rows that it has read, at the same "
          "learning rate: plain gradient descent, Adagrad, or Adagrad with one sum of squares for "
          "each row. Momentum, weight decay, clipping and averages are of all other parameters")
        .only_with("data.dataset", {"clicks"});
    t.key(&S::tables_eps, "tables_eps", "Added to the denominator of the tables' Adagrad")
        .at_least(0)
        .only_with("optimizer.tables", {"adagrad", "rowwise_adagrad"});
  }
};

}  // namespace tutti::config
