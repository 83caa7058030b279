#include "cuda/layers.h"

#include "cuda/order.h"
#include "device/layers.h"

namespace rushlight::cuda {

DeviceLayers layers() {
  DeviceLayers all;
  all.softmax = softmax;
  all.softmax_backward = softmax_backward;
  all.norm = norm;
  all.norm_backward = norm_backward;
  all.channel_statistics = channel_statistics;
  all.batch_norm_constants = batch_norm_constants;
  all.channel_affine = channel_affine;
  all.channel_backward = channel_backward;
  all.nll_each = nll_each;
  all.nll_sum = nll_sum;
  all.nll_backward = nll_backward;
  all.max_pool = max_pool;
  all.max_pool_backward = max_pool_backward;
  all.mean_pool = mean_pool;
  all.mean_pool_backward = mean_pool_backward;
  all.image_to_columns = image_to_columns;
  all.columns_to_image = columns_to_image;
  all.resample = resample;
  all.lstm_step = lstm_step;
  all.lstm_step_backward = lstm_step_backward;
  all.lstm_sequence = lstm_sequence;
  all.lstm_sequence_backward = lstm_sequence_backward;
  all.lstm_whole_step = lstm_whole_step;
  all.lstm_whole_step_backward = lstm_whole_step_backward;
  all.gru_step = gru_step;
  all.gru_step_backward = gru_step_backward;
  all.optimizer_step = optimizer_step;
  all.unscale = unscale;
  all.attention = attention;
  all.attention_backward = attention_backward;
  all.dropout_factors = dropout_factors;
  all.random_place = random_place;
  all.grid_sample = grid_sample;
  all.grid_sample_backward = grid_sample_backward;
  all.embedding_bag = embedding_bag;
  all.row_distances = row_distances;
  all.join = join;
  all.order = {.sort = sort_in_order,
               .top = top,
               .select = select_of_lines,
               .running_extreme = running_extreme,
               .search = search_sorted,
               .extremes = extremes,
               .count = count_bins,
               .count_flags = count_flags,
               .places = places_of_flags,
               .pick = pick_flagged,
               .spread = spread_flagged,
               .groups = groups_of_sorted,
               .permutation = permutation};
  return all;
}

}  // namespace rushlight::cuda
