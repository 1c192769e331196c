"""Exact plans as statements of SQL, for engines that speak it."""
