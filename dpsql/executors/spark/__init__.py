"""The engine over Spark: plans as statements of a session of our own beside the owner's."""
