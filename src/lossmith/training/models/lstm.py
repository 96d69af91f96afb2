"""Texts, word by word."""

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

__all__ = ["LastState"]


class LastState(nn.Module):
    """Texts as numbers of words, 0 where a text is over, to what an LSTM remembers at the end of each.

    Args:
        vocabulary: How many numbers there are.
        width: Of the words, and of the LSTM.
        layers: How many layers the LSTM has.
    """

    def __init__(self, vocabulary: int, width: int, layers: int = 1) -> None:
        super().__init__()
        self.out_features = width
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.memory = nn.LSTM(width, width, layers, batch_first=True)

    def forward(self, words: Tensor) -> Tensor:
        """Return features ``(n, width)`` of words ``(n, length)``.

        Args:
            words: Numbers of words, 0 where a text is over.

        Returns:
            The features.
        """
        lengths = (words != 0).sum(1).clamp_min(1)
        packed = pack_padded_sequence(self.words(words), lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, (last, _) = self.memory(packed)
        return last[-1]  # type: ignore[no-any-return]
