"""Alias of ``wisecrowd.learning.training.neural_classifier``, its previous location."""

from wisecrowd.learning.training.neural_classifier import NeuralClassifier as NeuralClassifier
