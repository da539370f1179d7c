"""Carrier gateways: what the platform asks of a carrier, over any carrier's own interface.

``client`` is what callers type against, ``errors`` is what they decide by,
``http.open_http_gateway`` opens the real thing. ``simulator`` is a carrier one
can run: it speaks the documented contract of ``drivers.generic``.
"""
