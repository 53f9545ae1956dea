"""Parts that several end-to-end methods share.

========================  ======================================================================
crowd_classifier          the public interface of every learner; needs no torch
crowd_regressor           the same for learners of numbers, with number_model, their workers
item_learner              the same for learners of rewards from votes on pairs
network_training          the parameters and steps of every learner that trains a network
neural_classifier         the fit of classifiers that train a network
network_model             the torch module that is trained, whatever the kind
crowd_model               the same for classes: a network and a loss over labels
trainer, checkpoint       the training loop, and files to resume it from
epoch_selection           the score that chooses the epoch to keep
output_calibration        exponents of the classifier and the labels, by held-out labels
collapse_checks           findings about a classifier that has collapsed
crowd_data, targets       batches of tasks, and class probabilities to train on
pair_data                 batches of votes on pairs
confusion_init            initial confusion matrices
label_model               likelihood of labels given the output of a classifier
logistic                  logistic regression on class probabilities
held_out_scoring          a score without gold by which methods are compared
alternating, known_tasks  parts of deepMF, deepBP and instance-dependent confusion
kernel_rounds             the alternation of CrowdKernel, with kernel_ridge and class_alignment
mismatched_features       tasks whose features do not fit their labels
refinement                a network trained on the posterior of a method without one
========================  ======================================================================
"""
