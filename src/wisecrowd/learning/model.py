"""Alias of ``wisecrowd.learning.training.crowd_model``, its previous location."""

from wisecrowd.learning.training.crowd_model import ConfusionModel as ConfusionModel
from wisecrowd.learning.training.crowd_model import CrowdModel as CrowdModel
from wisecrowd.learning.training.crowd_model import TargetModel as TargetModel
