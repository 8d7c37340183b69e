class _BaseDataLoaderIter:
    def __init__(self, dataset):
        self._dataset, self._num_yielded, self._data = dataset, 0, iter(dataset)

    def __iter__(self):
        return self

    def __next__(self):
        data = next(self._data)
        self._num_yielded += 1
        return data
