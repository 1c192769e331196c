"""The sentence: from a text to a result that is paid for."""
