#include "ops/graph_functions.h"

#include "core/long_work.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/join.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

std::shared_ptr<GraphFunction> function_of(std::string_view text) {
  RL_CHECK(read_graph, "this library does not run functions that are graphs");
  return read_graph(text);
}

std::vector<Tensor> joined(std::initializer_list<TensorList> lists) {
  std::vector<Tensor> all;
  for (const TensorList& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::vector<Tensor> run(GraphFunction& function, std::vector<Tensor> inputs, size_t results) {
  std::vector<Tensor> found = function.run(std::move(inputs));
  RL_CHECK_VALUE(found.size() == results, "a function of a graph gives ", found.size(), " tensors, not ",
                 results);
  return found;
}

bool truth_of(const Tensor& t) {
  RL_CHECK(t.numel() == 1, "a condition must have one element, but has ", t.numel());
  return read_scalar(t).to<bool>();
}

std::vector<Tensor> loop_body(const Call&, std::string_view condition_text, std::string_view body_text,
                              TensorList carried, TensorList given) {
  const auto condition = function_of(condition_text), body = function_of(body_text);
  std::vector<Tensor> now(carried.begin(), carried.end());
  InterruptPoll poll;
  while (truth_of(run(*condition, joined({now, given}), 1)[0])) {
    poll();
    now = run(*body, joined({now, given}), carried.size());
  }
  return now;
}

std::vector<Tensor> scan_body(const Call&, std::string_view text, TensorList carried, TensorList rows,
                              TensorList given) {
  const auto function = function_of(text);
  RL_CHECK_VALUE(!rows.empty() && rows[0].dim() > 0, "a scan of a graph needs tensors of rows");
  const int64_t count = rows[0].size(0);
  for (const Tensor& t : rows)
    RL_CHECK_VALUE(t.dim() > 0 && t.size(0) == count, "a scan of a graph needs equally many rows");
  RL_CHECK_VALUE(count > 0, "a map or a scan needs at least one row");
  std::vector<Tensor> now(carried.begin(), carried.end());
  std::vector<std::vector<Tensor>> columns;
  InterruptPoll poll;
  for (int64_t i = 0; i < count; ++i) {
    poll();
    std::vector<Tensor> step;
    for (const Tensor& t : rows) step.push_back(select(t, 0, i));
    std::vector<Tensor> found = function->run(joined({now, step, given}));
    RL_CHECK_VALUE(found.size() >= now.size() && (!i || found.size() == now.size() + columns.size()),
                   "a function of a graph gives ", found.size(), " tensors");
    columns.resize(found.size() - now.size());
    for (size_t k = 0; k < columns.size(); ++k) columns[k].push_back(std::move(found[now.size() + k]));
    found.resize(now.size());
    now = std::move(found);
  }
  for (const std::vector<Tensor>& column : columns) now.push_back(stack(column, 0));
  return now;
}

std::vector<Tensor> choose_body(const Call&, const Tensor& truth, std::string_view one,
                                std::string_view other, TensorList given) {
  return function_of(truth_of(truth) ? one : other)->run(joined({given}));
}

constexpr const char* kNoMeta = "what a function gives is known when it has run";

}  // namespace

void register_graph_function_operators(Table& t) {
  t.composite(loop_graph,
              "jit::loop_graph(str condition, str body, Tensor[] carried, Tensor[] given) -> Tensor[]",
              loop_body)
      .internal()
      .may_return_input()
      .no_meta(kNoMeta)
      .doc(
          "While the graph `condition` gives true for carried and given, carried is what `body` gives for "
          "them.");
  t.composite(scan_graph,
              "jit::scan_graph(str function, Tensor[] carried, Tensor[] rows, Tensor[] given) -> Tensor[]",
              scan_body)
      .internal()
      .may_return_input()
      .no_meta(kNoMeta)
      .doc(
          "A graph on carried, a row of each and given gives the next carried, and results, which are "
          "stacked.");
  t.composite(choose_graph, "jit::choose_graph(Tensor truth, str one, str other, Tensor[] given) -> Tensor[]",
              choose_body)
      .internal()
      .may_return_input()
      .no_meta(kNoMeta)
      .doc("What the graph `one` gives where truth is true, else what `other` gives.");
}

}  // namespace rushlight
