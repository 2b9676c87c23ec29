"""Writes cases.json: chat templates applied by jinja2, set up as transformers does.

    pip install jinja2==3.1.6
    python tests/chat/generate.py /path/to/SmolLM2-135M-Instruct.Q4_1.gguf
"""

import json
import struct
import sys
from pathlib import Path

from jinja2.sandbox import ImmutableSandboxedEnvironment


def template_of(path: str) -> str:
    """The chat template of a GGUF file, found by its key."""
    head = Path(path).read_bytes()[:4_000_000]
    key = b"tokenizer.chat_template"
    at = head.index(key) + len(key) + 4
    (length,) = struct.unpack_from("<Q", head, at)
    return head[at + 8 : at + 8 + length].decode()


# Written for this test, each with the constructs of a family of templates in use.
ALTERNATING = """{%- if messages[0]['role'] == 'system' -%}
    {%- set system = messages[0]['content'] -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set system = '' -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{{ bos_token }}
{%- for message in loop_messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('roles must alternate') }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {{- '[INST] ' + (system + '\\n\\n' if loop.first and system else '') + message['content'] | trim + ' [/INST]' }}
    {%- else %}
        {{- ' ' + message['content'].strip() + eos_token }}
    {%- endif %}
{%- endfor %}
"""
NAMESPACE = """{% set ns = namespace(turns=0) %}
{% for m in messages if m.role != 'system' %}
{% set ns.turns = ns.turns + 1 %}
<|{{ m.role | upper }}|>{{ m.content.split('</think>')[-1].lstrip() }}
{% endfor %}
{% if tools is defined and tools %}tools: {{ tools | tojson }}{% endif %}
{{ ns.turns }} turns{% if add_generation_prompt %}<|ASSISTANT|>{% endif %}
"""

LOOPS = """{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}
<{{ m.role }}>{{ m.content | trim }}{% if loop.index > 2 %}{% break %}{% endif %}
{% endfor %}
"""

USER = {"role": "user", "content": " What is a token?\n"}
SYSTEM = {"role": "system", "content": "Be brief."}
ANSWER = {"role": "assistant", "content": "<think>Hm.</think> A piece of text. "}
AGAIN = {"role": "user", "content": "And a “logit”?"}


def main() -> None:
    smollm2 = template_of(sys.argv[1])
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    cases = []
    templates = {"smollm2": smollm2, "alternating": ALTERNATING, "namespace": NAMESPACE, "loops": LOOPS}
    for name, template in templates.items():
        for messages in [[USER], [SYSTEM, USER], [SYSTEM, USER, ANSWER, AGAIN]]:
            prompt = environment.from_string(template).render(
                messages=messages, add_generation_prompt=True, bos_token="<s>", eos_token="</s>"
            )
            cases.append({"name": name, "template": template, "messages": messages, "prompt": prompt})
    out = Path(__file__).parent / "cases.json"
    out.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")


main()
