class _Meta(type):
    pass


class Variable(metaclass=_Meta):
    _execution_engine = object()


def backward():
    return Variable._execution_engine
