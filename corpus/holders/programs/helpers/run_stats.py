"""Statistics of a run, shared by the training scripts."""
history = []


class Tracker:
    def __init__(self):
        self.outputs = []

    def add(self, tensor):
        self.outputs.append(tensor)


tracker = Tracker()


def record(tensor):
    history.append(tensor)
