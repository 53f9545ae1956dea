"""Where the local steps run: in memory now, the same contract for files and clusters."""
