"""The host's side of NotesAgent Sidecar: the line protocol and a reference host.

``host_bridge.protocol`` holds the messages that both ends exchange; it is imported by the sidecar
itself and must stay small. ``host_bridge.launcher`` starts, watches and stops a sidecar.
"""
