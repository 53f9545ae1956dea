"""Methods whose answer is one class per task, one file each."""
