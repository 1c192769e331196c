"""From a plan to a noisy answer."""
