"""Alias of ``wisecrowd.learning.training.neural_classifier``, its former place."""

from wisecrowd.learning.training.neural_classifier import NeuralClassifier as NeuralClassifier
