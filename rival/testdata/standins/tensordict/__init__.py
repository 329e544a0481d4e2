"""A stand-in of tensordict: tensors by name."""


class TensorDict(dict):
    def __init__(self, tensors, batch_size):
        super().__init__(tensors)
        self.batch_size = batch_size
        for name, t in self.items():
            assert list(t.shape[: len(batch_size)]) == list(batch_size), f"{name} is {t.shape}"

    def copy(self):
        return TensorDict(self, self.batch_size)
