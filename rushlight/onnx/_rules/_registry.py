"""The rules by operator, and how a function is declared as one."""

RULES: dict = {}


def rule(*names):
    """Declares a function as the rule of operators."""

    def declare(function):
        for name in names:
            RULES[name] = function
        return function

    return declare
