"""What operators take out of the platform: lists of cards, and all there is about one card."""
