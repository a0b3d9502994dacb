"""Tests of the local models."""
