"""What passes over exported programs ask of their nodes; dataclasses as containers."""

import dataclasses

from rushlight.utils import _pytree as pytree

__all__ = [
    "get_buffer",
    "get_lifted_tensor_constant",
    "get_param",
    "is_buffer",
    "is_lifted_tensor_constant",
    "is_param",
    "register_dataclass_as_pytree_node",
]


def is_param(program, node):
    """Whether a node is a parameter of the program."""
    return node.name in program.graph_signature.inputs_to_parameters


def is_buffer(program, node):
    return node.name in program.graph_signature.inputs_to_buffers


def is_lifted_tensor_constant(program, node):
    return node.name in program.graph_signature.inputs_to_lifted_tensor_constants


def get_param(program, node):
    """The parameter that a node is, or None."""
    return program.state_dict.get(program.graph_signature.inputs_to_parameters.get(node.name))


def get_buffer(program, node):
    """The buffer that a node is, or None."""
    signature = program.graph_signature
    name = signature.inputs_to_buffers.get(node.name)
    held = program.constants if name in signature.non_persistent_buffers else program.state_dict
    return held.get(name)


def get_lifted_tensor_constant(program, node):
    """The constant that a node is, or None."""
    name = program.graph_signature.inputs_to_lifted_tensor_constants.get(node.name)
    return program.constants.get(name)


def register_dataclass_as_pytree_node(
    cls,
    flatten_fn=None,
    unflatten_fn=None,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    return_none_fields=False,
):
    """Let instances of a dataclass be containers of their fields; those that are None are left out."""
    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )

    def flatten(instance):
        values = {f.name: getattr(instance, f.name) for f in dataclasses.fields(instance)}
        kept = {name: v for name, v in values.items() if v is not None or return_none_fields}
        return list(kept.values()), [list(kept), [name for name in values if name not in kept]]

    def unflatten(values, context):
        names, absent = context
        return cls(**dict(zip(names, values)), **dict.fromkeys(absent))  # type: ignore[operator]

    def flatten_with_keys(instance):
        values, (names, _) = (flatten_fn or flatten)(instance)
        return [(pytree.MappingKey(name), v) for name, v in zip(names, values)], names

    pytree.register_pytree_node(
        cls,
        flatten_fn or flatten,
        unflatten_fn or unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
        to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context,
    )
