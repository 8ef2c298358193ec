#pragma once
// The keys of [loss]: values, and the rows that describe them (config_table.h).

#include <vector>

#include "tutti/config/config_words.h"

namespace tutti::config {

struct LossSection {
  double label_smoothing = 0;
  std::vector<double> class_weights{};  ///< empty: all equal
  ops::MeanOver mean_over = ops::MeanOver::weights;
  ops::PointwiseLossKind pointwise = ops::PointwiseLossKind::mse;
  double delta = 1;

  template <class Keys>
  static void keys(Keys& t) {
    using S = LossSection;

    t.key(&S::label_smoothing, "label_smoothing",
          "Probability spread evenly over the classes, or the vocabulary")
        .between(0, 0.999)
        .only_with("model.task", {"classify", "segment", "language"});
    t.key(&S::class_weights, "class_weights", "Weight of each class. Empty: all alike")
        .at_least(0)
        .only_with("model.task", {"classify", "segment"});
    t.key(&S::mean_over, "mean_over",
          "Of weighted classes, whether the sum of the losses is divided by the sum of their "
          "weights, as PyTorch does, or by the number of labels, as DeepCAM does")
        .only_with("loss.class_weights");
    t.key(&S::pointwise, "pointwise", "Loss of each number").only_with("model.task", {"regress"});
    t.key(&S::delta, "delta", "Where huber becomes linear")
        .at_least(1e-6)
        .only_with("loss.pointwise", {"huber"});
  }
};

}  // namespace tutti::config
