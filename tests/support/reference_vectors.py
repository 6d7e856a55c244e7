"""The vectors of the original default encoders, with which built encoders are compared.

Run as a program, it writes them anew: after a change of the sample or of the sentences of the language projection.
"""

import tempfile
from pathlib import Path

import numpy as np

from pipeline.index.encoder import ENGLISH, FORMAT, FP32, MULTILINGUAL, Manifest
from pipeline.index.packaged_encoders import REFERENCES
from pipeline.index.torch_export import choose_prompts, encode_reference, load_original


def compute_references():
    """Encode the sample with sentence-transformers; return the arrays of the file."""
    arrays = {}
    for model in (ENGLISH, MULTILINGUAL):
        with tempfile.TemporaryDirectory() as scratch:
            original = load_original(model, Path(scratch))
            query, document = choose_prompts(model, original.prompts)
            reference = encode_reference(original, Manifest(model, 0, 0, 0, query, document, FP32, FORMAT, {}))
        arrays[f"{model}.documents"] = reference.documents.astype(np.float16)
        arrays[f"{model}.queries"] = reference.queries.astype(np.float16)
    return arrays


if __name__ == "__main__":
    np.savez(REFERENCES, **compute_references())
