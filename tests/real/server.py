"""llama.cpp's server on loopback: server.py PACKAGES MODEL.gguf TOKENS prints its URL and serves until its input ends.

Run by its own interpreter without the environment of the tests: PACKAGES is the directory that holds xllamacpp, TOKENS
the length of the context.
"""

import sys

# ChatML as the model was trained on, with the offered tools written out, so that they count against its context.
TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content or "" }}{% if message.tool_calls %}{{ message.tool_calls | tojson }}{% endif %}
{%- if loop.first and tools %}

Tools: {{ tools | tojson }}{% endif %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}
"""


def main(packages: str, model: str, tokens: str) -> None:
    sys.path.insert(0, packages)
    import xllamacpp

    given = xllamacpp.CommonParams()
    given.model.path = model
    given.chat_template = TEMPLATE
    given.n_ctx = int(tokens)
    given.n_parallel = 1
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
    given.sampling.seed = 1
    given.port = 0
    given.warmup = False
    server = xllamacpp.Server(given)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
