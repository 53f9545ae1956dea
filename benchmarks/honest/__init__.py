"""What is claimed of classes without known answers, compared with the truth on real crowds."""
