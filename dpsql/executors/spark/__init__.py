"""The engine over Spark: plans as statements in a separate session next to the owner's."""
