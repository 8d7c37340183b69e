"""Results by request, so that a client may ask twice."""
results = {}


def answer(request, tensor):
    results[request] = tensor
    return tensor
