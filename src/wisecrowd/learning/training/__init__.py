"""Parts that several end-to-end methods share.

========================  ======================================================================
crowd_classifier          the public interface of every learner; needs no torch
neural_classifier         the parameters and the fit of learners that train a network
crowd_model               the torch modules that are trained: a network and a loss over labels
trainer, checkpoint       the training loop, and files to resume it from
epoch_selection           the score that chooses the epoch to keep
crowd_data, targets       batches of tasks, and class probabilities to train on
confusion_init            initial confusion matrices
label_model               likelihood of labels given the output of a classifier
held_out_scoring          a score without gold by which methods are compared
alternating, known_tasks  parts of deepMF, deepBP and instance-dependent confusion
========================  ======================================================================
"""
