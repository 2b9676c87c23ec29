"""Writes cases.json: chat templates applied by jinja2, set up by transformers.

    pip install jinja2==3.1.6 transformers==5.24.0
    python tests/chat/generate.py /path/to/SmolLM2-135M-Instruct.Q4_1.gguf
"""

import datetime
import json
import struct
import sys
from pathlib import Path

from jinja2 import TemplateError
from transformers.utils.chat_template_utils import _compile_jinja_template


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

DATED = """{{- bos_token }}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "1 Jan 2000" %}
    {%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|head|>system<|end_head|>\\n\\n" }}
{%- if tools is not none %}{{- "Tools: " + (tools | tojson(indent=4)) + "\\n" }}{%- endif %}
{{- "Today: " + date_string + strftime_now(" (%Y-%m-%d, %B)") + "\\n\\n" }}
{{- system_message + "<|eot|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|head|>' + message['role'] + '<|end_head|>\\n\\n' + message['content'] | trim + '<|eot|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|head|>assistant<|end_head|>\\n\\n' }}{%- endif %}
"""
THINKING = """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not (message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}{%- set content = message.content %}{%- else %}{%- set content = '' %}{%- endif %}
    {%- if message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or reasoning_content) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}{{- message.tool_calls[0].arguments | tojson }}{%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}
"""
NO_SYSTEM = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<turn>' + role + '
' + message['content'] | trim + '</turn>
' }}{% endfor %}{% if add_generation_prompt %}{{'<turn>model
'}}{% endif %}"""
LAST_SYSTEM = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{{- bos_token }}
{%- for message in loop_messages | rejectattr("role", "equalto", "tool") %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}{{- "[TOOLS]" + tools | string }}{%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"] | trim + eos_token }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, not " ~ message["role"]) }}
    {%- endif %}
{%- endfor %}
"""
TRAINED = """{% for message in messages %}{% if message['role'] == 'assistant' %}{{'<|assistant|>\\n'}}
{%- generation %}{{ message['content'] + '<|end|>' }}{%- endgeneration -%}
{{ '\\n' }}{% else %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' }}{% endif %}{% endfor %}
{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}
"""
JSON = """{%- for m in messages %}{{ m | tojson }}{{ "\\n" }}{{ m.content | tojson }}{% endfor %}
{{ {"name": "f", "arguments": [1, 2.5, none, true, "é\\t\\u007f</b>"], "empty": {}, "none": []} | tojson }}
{{ {"b": [1, {"a": "x"}], "a": []} | tojson(indent=2) }}
"""
BEGUN = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}
{%- set ns = namespace(is_first=false, system_prompt='', is_first_sp=true) %}
{%- for message in messages %}{%- if message['role'] == 'system' %}
{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}
{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}
{{- bos_token }}{{ ns.system_prompt }}
{%- for message in messages %}
{%- if message['role'] == 'user' %}{{'<｜User｜>' + message['content']}}{%- endif %}
{%- if message['role'] == 'assistant' and message['content'] is not none %}
{%- set content = message['content'] %}
{%- if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}
{{- '<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}{%- endif %}
{%- endfor -%}
{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜><think>\\n'}}{% endif %}
"""

USER = {"role": "user", "content": " What is a token?\n"}
SYSTEM = {"role": "system", "content": "Be brief."}
ANSWER = {"role": "assistant", "content": "<think>\nHm.\n</think>\n\n A piece of text. "}
AGAIN = {"role": "user", "content": "And a “logit”?"}
DATE = "2024-07-03"


def main() -> None:
    smollm2 = template_of(sys.argv[1])
    cases = []
    templates = {
        "smollm2": smollm2,
        "alternating": ALTERNATING,
        "namespace": NAMESPACE,
        "loops": LOOPS,
        "dated": DATED,
        "thinking": THINKING,
        "no system": NO_SYSTEM,
        "last system": LAST_SYSTEM,
        "trained": TRAINED,
        "json": JSON,
        "begun": BEGUN,
    }
    for name, template in templates.items():
        compiled = _compile_jinja_template(template)
        compiled.globals["strftime_now"] = datetime.date.fromisoformat(DATE).strftime
        for messages in [[USER], [SYSTEM, USER], [SYSTEM, USER, ANSWER, AGAIN], [USER, ANSWER, AGAIN]]:
            case = {"name": name, "template": template, "messages": messages, "date": DATE}
            try:
                case["prompt"] = compiled.render(
                    messages=messages,
                    tools=None,
                    documents=None,
                    add_generation_prompt=True,
                    bos_token="<s>",
                    eos_token="</s>",
                )
            except TemplateError as error:
                case["refused"] = str(error)
            cases.append(case)
    out = Path(__file__).parent / "cases.json"
    out.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")


main()
