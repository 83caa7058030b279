"""The optimizers' steps as functions of lists: parameters, gradients and state. Each is the class's own
update, on parameters that no optimizer holds."""

from importlib import import_module

import rushlight

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
]


def _check_lists(name, params, grads, state):
    lengths = {"grads": len(grads), **{key: len(values) for key, values in state.items()}}
    for what, length in lengths.items():
        if length != len(params):
            raise RuntimeError(f"{name}: got {len(params)} params, but {length} {what}")


def _step(cls_name, params, grads, state, group, grad_scale=None, found_inf=None):
    """One step of a class on every parameter. What the class adds to the state is put into the lists."""
    if found_inf is not None and found_inf.item() != 0:
        return
    _check_lists(cls_name.lower(), params, grads, state)
    cls = getattr(import_module("rushlight.optim"), cls_name)
    optimizer = cls.__new__(cls)
    group.setdefault("differentiable", False)
    with rushlight.set_grad_enabled(group["differentiable"] and rushlight.is_grad_enabled()):
        for i, (p, grad) in enumerate(zip(params, grads)):
            own = {key: values[i] for key, values in state.items()}
            if grad_scale is not None:
                grad = grad / grad_scale
            optimizer._move(group, p, grad, own)
            for key, values in state.items():
                values[i] = own[key]


def adadelta(
    params,
    grads,
    square_avgs,
    acc_deltas,
    state_steps,
    capturable=False,
    foreach=None,
    differentiable=False,
    has_complex=False,
    *,
    lr,
    rho,
    eps,
    weight_decay,
    maximize,
):
    """One step of Adadelta."""
    state = {"square_avg": square_avgs, "acc_delta": acc_deltas, "step": state_steps}
    group = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
    _step("Adadelta", params, grads, state, {**group, "differentiable": differentiable})


def adagrad(
    params,
    grads,
    state_sums,
    state_steps,
    fused=None,
    grad_scale=None,
    found_inf=None,
    has_sparse_grad=False,
    foreach=None,
    differentiable=False,
    has_complex=False,
    *,
    lr,
    weight_decay,
    lr_decay,
    eps,
    maximize,
):
    """One step of Adagrad."""
    state = {"sum": state_sums, "step": state_steps}
    group = {"lr": lr, "weight_decay": weight_decay, "lr_decay": lr_decay, "eps": eps, "maximize": maximize}
    group["differentiable"] = differentiable
    _step("Adagrad", params, grads, state, group, grad_scale, found_inf)


def adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    foreach=None,
    capturable=False,
    differentiable=False,
    fused=None,
    grad_scale=None,
    found_inf=None,
    has_complex=False,
    decoupled_weight_decay=False,
    *,
    amsgrad,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    maximize,
):
    """One step of Adam."""
    state = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "step": state_steps}
    if amsgrad:
        state["max_exp_avg_sq"] = max_exp_avg_sqs
    group = {"amsgrad": amsgrad, "betas": (beta1, beta2), "lr": lr, "weight_decay": weight_decay, "eps": eps}
    group |= {"maximize": maximize, "differentiable": differentiable}
    group["decoupled_weight_decay"] = decoupled_weight_decay
    _step("Adam", params, grads, state, group, grad_scale, found_inf)


def adamw(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    foreach=None,
    capturable=False,
    differentiable=False,
    fused=None,
    grad_scale=None,
    found_inf=None,
    has_complex=False,
    *,
    amsgrad,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    maximize,
):
    """One step of AdamW."""
    adam(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        differentiable=differentiable,
        grad_scale=grad_scale,
        found_inf=found_inf,
        decoupled_weight_decay=True,
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
    )


def adamax(
    params,
    grads,
    exp_avgs,
    exp_infs,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    eps,
    beta1,
    beta2,
    lr,
    weight_decay,
):
    """One step of Adamax."""
    state = {"exp_avg": exp_avgs, "exp_inf": exp_infs, "step": state_steps}
    group = {"eps": eps, "betas": (beta1, beta2), "lr": lr, "weight_decay": weight_decay}
    _step("Adamax", params, grads, state, {**group, "maximize": maximize, "differentiable": differentiable})


def asgd(
    params,
    grads,
    axs,
    mus,
    etas,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    lambd,
    lr,
    t0,
    alpha,
    weight_decay,
):
    """One step of ASGD."""
    state = {"ax": axs, "mu": mus, "eta": etas, "step": state_steps}
    group = {"lambd": lambd, "lr": lr, "t0": t0, "alpha": alpha, "weight_decay": weight_decay}
    _step("ASGD", params, grads, state, {**group, "maximize": maximize, "differentiable": differentiable})


def nadam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    mu_products,
    state_steps,
    decoupled_weight_decay=False,
    foreach=None,
    capturable=False,
    differentiable=False,
    has_complex=False,
    maximize=False,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    momentum_decay,
    eps,
):
    """One step of NAdam."""
    state = {
        "exp_avg": exp_avgs,
        "exp_avg_sq": exp_avg_sqs,
        "mu_product": mu_products,
        "step": state_steps,
    }
    group = {"betas": (beta1, beta2), "lr": lr, "weight_decay": weight_decay, "eps": eps}
    group |= {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
    _step("NAdam", params, grads, state, {**group, "maximize": maximize, "differentiable": differentiable})


def radam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    state_steps,
    decoupled_weight_decay=False,
    foreach=None,
    differentiable=False,
    capturable=False,
    has_complex=False,
    maximize=False,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
):
    """One step of RAdam."""
    state = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "step": state_steps}
    group = {"betas": (beta1, beta2), "lr": lr, "weight_decay": weight_decay, "eps": eps}
    group |= {"decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize}
    _step("RAdam", params, grads, state, {**group, "differentiable": differentiable})


def rmsprop(
    params,
    grads,
    square_avgs,
    grad_avgs,
    momentum_buffer_list,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    lr,
    alpha,
    eps,
    weight_decay,
    momentum,
    centered,
):
    """One step of RMSprop."""
    state = {"square_avg": square_avgs, "step": state_steps}
    if centered:
        state["grad_avg"] = grad_avgs
    if momentum > 0:
        state["momentum_buffer"] = momentum_buffer_list
    group = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
    group |= {"centered": centered, "maximize": maximize, "differentiable": differentiable}
    _step("RMSprop", params, grads, state, group)


def rprop(
    params,
    grads,
    prevs,
    step_sizes,
    state_steps,
    foreach=None,
    capturable=False,
    maximize=False,
    differentiable=False,
    has_complex=False,
    *,
    step_size_min,
    step_size_max,
    etaminus,
    etaplus,
):
    """One step of Rprop."""
    state = {"prev": prevs, "step_size": step_sizes, "step": state_steps}
    group = {"etas": (etaminus, etaplus), "step_sizes": (step_size_min, step_size_max)}
    _step("Rprop", params, grads, state, {**group, "maximize": maximize, "differentiable": differentiable})


def sgd(
    params,
    d_p_list,
    momentum_buffer_list,
    has_sparse_grad=False,
    foreach=None,
    fused=None,
    grad_scale=None,
    found_inf=None,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
):
    """One step of SGD. Buffers that are None are made and put into the list."""
    state = {"momentum_buffer": momentum_buffer_list} if momentum != 0 else {}
    group = {"weight_decay": weight_decay, "momentum": momentum, "lr": lr, "dampening": dampening}
    group |= {"nesterov": nesterov, "maximize": maximize}
    _step("SGD", params, d_p_list, state, group, grad_scale, found_inf)


def sparse_adam(params, grads, exp_avgs, exp_avg_sqs, state_steps, *, eps, beta1, beta2, lr, maximize):
    """One step of SparseAdam; ``state_steps`` are numbers that count this step already."""
    steps = [step - 1 for step in state_steps]
    state = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "step": steps}
    group = {"eps": eps, "betas": (beta1, beta2), "lr": lr, "maximize": maximize}
    _step("SparseAdam", params, grads, state, group)
