"""Barograph."""
