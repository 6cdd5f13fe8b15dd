"""Frames over one encrypted connection: handshake, lengths, deadlines, and the queue of frames to send.

Start with `transport`.
"""
