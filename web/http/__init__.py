"""The HTTP frame: routing, sign-in, limits and the OpenAPI document."""
