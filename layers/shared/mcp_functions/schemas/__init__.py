"""A signature as JSON Schema: types, forms, defaults and validation."""
