"""Data as a network takes it."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from lossmith.data.column_scales import ColumnScales, column_scales
from lossmith.data.sparse_rows import Inputs, SparseRows, as_tensor
from lossmith.encoders.model_folder import ModelFolder

__all__ = ["PreparedData", "Texts"]

_MOST_IMAGES = 2000  # of CIFAR-10 these are two million patches, far more than a covariance of a dozen numbers needs


@dataclass(frozen=True, eq=False)
class Texts:
    """The texts that inputs were made of, for models that read texts in their own way."""

    strings: tuple[str, ...]
    """One for each row: all its columns of text behind one another."""
    inputs: Tensor
    """``(d,)`` truth values: which inputs come from the texts."""
    encoder: ModelFolder | None = None
    """The pretrained encoder that read them, if one did: inputs are its vectors, or tokens where it is trained further."""
    vectors: Tensor | None = None
    """``(n, d)``: the encoder's vectors, where inputs are tokens."""


@dataclass(frozen=True, eq=False)
class PreparedData:
    """Inputs and labels as tensors, and which rows serve for what. Nothing in it has seen label noise that we add."""

    name: str
    inputs: Inputs
    """``(n, ...)``: features ``(n, d)`` and images ``(n, channels, height, width)`` in single precision; sparse rows ``(n, d)``
    where there are n-grams of texts among the features; or the words of texts as numbers ``(n, length)`` in 64-bit integers, 0
    where a text is over."""
    labels: Tensor
    """``(n,)``: class indices as the data gives them."""
    classes: tuple[str, ...]
    """The names of the classes."""
    train: Tensor
    """Row numbers of the training split."""
    validation: Tensor
    """Row numbers of the validation split."""
    test: Tensor
    """Row numbers of the test split, whose labels are never corrupted."""
    true_labels: Tensor | None = None
    """``(n,)``: the true classes, where the labels are noisy already and the data knows better."""
    groups: tuple[int, ...] | None = None
    """The coarse group of each class, for noise within groups."""
    notes: tuple[str, ...] = ()
    """What a user should know: rare classes, constant columns, duplicate rows."""
    texts: Texts | None = None
    """The texts, where there are any. The inputs say the same, so that the fingerprint leaves them out."""

    @property
    def num_classes(self) -> int:
        """Return the number of classes."""
        return len(self.classes)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Return the shape of one input."""
        return tuple(self.inputs.shape[1:])

    @property
    def is_sparse(self) -> bool:
        """Return whether inputs are sparse rows."""
        return isinstance(self.inputs, SparseRows)

    @property
    def kind(self) -> str:
        """Return what was read: ``table``, ``text``, ``mixed`` where a table has texts beside other columns, or ``image``."""
        if self.inputs.ndim > 2:
            return "image"
        if not self.inputs.is_floating_point() or (self.texts is not None and self.texts.inputs.all()):
            return "text"
        return "table" if self.texts is None else "mixed"

    @property
    def encoder(self) -> ModelFolder | None:
        """Return the pretrained encoder that inputs are tokens for; None where they are anything else."""
        return None if self.texts is None or self.inputs.is_floating_point() else self.texts.encoder

    def column_scales(self) -> ColumnScales:
        """Return what the training rows say of the columns, for models that scale them.

        Returns:
            Centre and scale of the columns of numbers.
        """
        return self._column_scales

    @cached_property
    def _column_scales(self) -> ColumnScales:
        return column_scales(as_tensor(self.inputs[self.train]).flatten(1))

    def some_images(self) -> Tensor:
        """Return training images, at most 2000 of them and always the same, for models that compute a layer from them.

        Returns:
            Some of the inputs.
        """
        step = -(-len(self.train) // _MOST_IMAGES)
        return as_tensor(self.inputs[self.train[::step]])

    def fingerprint(self) -> str:
        """Return a digest of everything that the results depend on, by which a study knows its data again.

        Returns:
            Sixteen hexadecimal digits.
        """
        digest = hashlib.sha256(repr((self.classes, self.groups, self.inputs.shape)).encode())
        truth = self.labels if self.true_labels is None else self.true_labels
        inputs = self.inputs.parts() if isinstance(self.inputs, SparseRows) else (self.inputs,)
        if self.texts is not None and self.texts.encoder is not None:
            # Vectors that are computed again, elsewhere, are the same to rounding only; what they are computed from is the same.
            digest.update(repr((self.texts.encoder.digest(), self.texts.strings)).encode())
            inputs = (as_tensor(self.inputs)[:, ~self.texts.inputs],)
        for part in (*inputs, self.labels, truth, self.train, self.validation, self.test):
            digest.update(part.contiguous().numpy())  # type: ignore[arg-type]
        return digest.hexdigest()[:16]
