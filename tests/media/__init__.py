"""Tests of the media domain."""
