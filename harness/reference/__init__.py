"""What outputs are compared with: expected outputs, made whole or in slices along a batch."""
