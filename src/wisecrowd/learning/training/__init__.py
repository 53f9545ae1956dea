"""Parts that several end-to-end methods share.

==================  ============================================================================
rows_of_features    which task or item each row of the features is about, and tasks of the fit
crowd_classifier    the learner of classes, on learning.base; needs no torch
network_training    the parameters and steps of every learner that trains a network
neural_classifier   the fit of classifiers that train a network, and the epoch to keep
crowd_model         the torch module that is trained: a network, matrices and a loss over labels
crowd_data          batches of tasks
trainer             the module that is trained, whatever the kind, and the training loop
checkpoint          files of networks, and files to resume training from
ranks               training on several processes
label_model         likelihood of labels given class probabilities; targets; logistic regression
output_calibration  exponents of the classifier and the labels, by held-out labels
held_out_scoring    a score without gold by which methods are compared
alternating         the alternation of deepMF and deepBP
kernel_rounds       the rounds of CrowdKernel: kernel ridge regression, features that do not fit
==================  ============================================================================

Learners of numbers and of rewards stand beside their methods: ``numbers.crowd_regressor`` and
``pairs.item_learner``.
"""
