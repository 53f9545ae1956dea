"""Questions that an audit asks, one file each; ``plan`` lists them."""
