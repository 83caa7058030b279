"""Equalisation of weights and operands before rounding: observers for it are not built here."""

__all__ = ["convert_eq_obs", "update_obs_for_equalization"]


def _refuse(model):
    names = [name for name, m in model.named_modules() if "EqualizationObserver" in type(m).__name__]
    if names:
        raise NotImplementedError(
            f"{names[0]}: graphs with equalising observers cannot be converted; prepare without "
            f"_equalization_config"
        )


def update_obs_for_equalization(model, modules):
    """The equalising observers of weights by node: a model that was prepared here has none."""
    _refuse(model)
    return {}


def convert_eq_obs(model, modules, weight_eq_obs_dict):
    """Scale weights by what equalising observers saw: none did."""
    _refuse(model)
