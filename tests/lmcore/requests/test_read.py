"""Requests as people paste them: what each server makes of every field, and what is said of the others."""

import json

import pytest

from lmcore.requests import NOTES, SERVERS, RequestError, read
from lmcore.sampling import preset

CURL = """curl http://10.0.0.7:8000/v1/chat/completions \\
  -H "Content-Type: application/json" \\
  -H "Authorization: Bearer sk-very-secret" \\
  --data '{"model": "m", "messages": [{"role": "system", "content": "Be short."},
           {"role": "user", "content": [{"type": "text", "text": "It'"'"'s hot."}]}],
           "temperature": 0.7, "repeat_penalty": 1.2, "top_logprobs": 5, "max_tokens": 9, "stop": "\\n"}'"""


def test_a_curl_line_becomes_messages_settings_and_sentences_and_no_key():
    request = read(CURL)
    assert (request.server.name, request.is_guess, request.model) == ("vllm", True, "m")
    assert request.messages == (("system", "Be short."), ("user", "It's hot."))
    assert request.text == "system: Be short.\nuser: It's hot."
    assert request.settings == preset("vllm", temperature=0.7)
    assert (request.top_log_probs, request.max_tokens, request.stop) == (5, 9, ("\n",))
    assert request.remarks[0] == (
        "vLLM has no field repeat_penalty and ignores it: it changes nothing. There the same is called "
        "repetition_penalty."
    )
    assert "secret" not in repr(request)


_BODY = '{"prompt":"It\'s 今","top_p":0.5}'
_PLAIN = "'" + _BODY.replace("'", "\\u0027") + "'"
_ESCAPED = _BODY.replace('"', '\\"')
LINES = {
    "as bash quotes it": "curl 'http://h:8000/v1/completions' --data-raw $'" + _BODY.replace("'", "\\'") + "'",
    "a quote within quotes": "curl h:8000/v1/completions -d '" + _BODY.replace("'", "'\\''") + "'",
    "over lines, a pipe": f"curl -sS \\\n h:8000/v1/completions \\\n --json {_PLAIN} | jq .",
    "options joined": f'curl --json="{_ESCAPED}" -XPOST h:8000/v1/completions',
    "a key set in front": f"API_KEY=sk-secret curl h:8000/v1/completions -d {_PLAIN}",
    "a body below": f"curl h:8000/v1/completions -d @- <<EOF\n{_BODY}\nEOF",
    "a body below, quoted": f"curl h:8000/v1/completions --json @- << 'END' | jq\n{_BODY}\nEND\n",
    "Windows, by hand": f'curl "http://h:8000/v1/completions" ^\n --data-raw "{_ESCAPED}"',
    "Windows, from a browser": 'curl ^"http://h:8000/v1/completions^" ^\r\n  --data-raw ^"{}^"'.format(
        _ESCAPED.replace("{", "^{").replace("}", "^}").replace('\\"', '^\\^"')
    ),
    "in a Markdown text": f"```bash\n$ curl h:8000/v1/completions -d {_PLAIN}\n```",
    "the body in a Markdown text": '```json\n{"prompt":"It\'s 今","top_p":0.5}\n```',
}


def test_curl_lines_as_people_have_them():
    for kind, line in LINES.items():
        request = read(line)
        assert (request.prompt, request.settings.top_p) == ("It's 今", 0.5), kind
        assert request.settings.engine == ("openai" if kind.startswith("the body") else "vllm"), kind
        assert "secret" not in repr(request), kind
    with pytest.raises(RequestError, match="lies in a file"):
        read("curl h:8000/v1/completions --json @body.json")


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("curl https://api.openai.com/v1/chat/completions -d '{}'", "openai"),
        ("curl http://localhost:11434/api/generate -d '{}'", "ollama"),
        ("curl http://localhost:11434/v1/chat/completions -d '{}'", "ollama-v1"),
        ("curl localhost:30000/v1/completions -d '{}'", "sglang"),
        ("curl localhost:8080/completion --json '{}'", "llama-server"),
        ('{"options": {"temperature": 0.1}}', "ollama"),
        ('{"inputs": "a", "parameters": {}}', "tgi"),
        ('{"n_predict": 5}', "llama-server"),
        ('{"temperature": 0.1}', "openai"),
        ('{"top_k": 5, "repetition_penalty": 1.1}', "vllm"),
        ('{"top_k": 5, "repeat_penalty": 1.1}', "llama-server"),
    ],
)
def test_which_server_a_request_is_for(text, server):
    assert read(text).server.name == server


BODIES = {
    "openai": ({"temperature": 0.5, "top_p": 0.9, "logit_bias": {"5": -100}}, {"logit_bias": {5: -100}}),
    "vllm": ({"temperature": 0.5, "top_p": 0.9, "top_k": -1, "min_p": 0.1}, {"min_p": 0.1}),
    "sglang": ({"temperature": 0.5, "top_p": 0.9, "top_k": 7}, {"top_k": 7}),
    "llama-server": (
        {"temperature": 0.5, "top_p": 0.9, "repeat_penalty": 1.1, "repeat_last_n": 32, "dry_multiplier": 0.8},
        {"repetition_penalty": 1.1, "penalty_last_n": 32, "dry_multiplier": 0.8},
    ),
    "ollama": ({"options": {"temperature": 0.5, "top_p": 0.9, "repeat_penalty": 1.1}}, {"repetition_penalty": 1.1}),
    "ollama-v1": ({"temperature": 0.5, "top_p": 0.9}, {}),
    "tgi": ({"parameters": {"temperature": 0.5, "top_p": 0.9, "typical_p": 0.8}}, {"typical_p": 0.8}),
    "tgi-v1": ({"temperature": 0.5, "top_p": 0.9}, {}),
}


def test_without_an_address_the_server_that_knows_most_of_the_settings_is_guessed():
    assert read('{"temp": 0.7, "repeat_penalty": 1.1}').server.name == "llama-server"
    assert read('{"temp": 0.7}').server.name == "vllm"  # nobody's field


@pytest.mark.parametrize("name", SERVERS)
def test_the_settings_of_each_server_are_its_presets(name):
    body, more = BODIES[name]
    request = read(json.dumps({SERVERS[name].prompt: "The", "seed": 3, **body}), name)
    assert request.settings.temperature == 0.5 and request.settings.top_p == 0.9
    expected = preset(SERVERS[name].preset, temperature=0.5, top_p=0.9, **more)
    assert dict(request.settings.values) == dict(expected.values), name
    assert request.prompt == "The" or "chat" in SERVERS[name].path
    assert not [note for note in request.remarks if "no field" in note and "seed" not in note], request.remarks


@pytest.mark.parametrize(
    ("body", "server", "said"),
    [
        ({"temprature": 0.1}, "vllm", "Is temperature meant?"),
        ({"temp": 0.1}, "llama-server", "There the same is called temperature."),
        ({"top_k": 5}, "openai", "OpenAI has no field top_k and answers with an error."),
        ({"top_k": 5}, "ollama-v1", "Ollama, /v1 has no field top_k and ignores it: it changes nothing."),
        ({"temperature": 0.1, "prompt": "a"}, "ollama", "reads temperature only inside options"),
        ({"options": {"mirostat": 2}}, "ollama", "has no field mirostat and ignores it"),
        ({"parameters": {"frequency_penalty": 0.3}}, "tgi", "a token's share of the text"),
        ({"inputs": "a", "parameters": {}}, "tgi", "TGI is greedy unless"),
        ({"api_key": "sk-abc"}, "vllm", "api_key looks like a key."),
        ({"temperature": "warm"}, "vllm", "temperature is not what vLLM takes there"),
        ({"logit_bias": [["Paris", 3]]}, "llama-server", "give its id"),
        ({"grammar": "root ::= x"}, "llama-server", "It limits what can be drawn"),
        ({"temperature": 10**400}, "vllm", "temperature is not what vLLM takes there"),
        ({"logit_bias": {"9" * 5000: 1}}, "vllm", "give its id"),
        ({"samplers": 5}, "llama-server", "samplers is not what llama-server takes there"),
        ({"samplers": ["top-q"]}, "llama-server", "samplers leaves no sampler that llama-server knows"),
        ({"samplers": []}, "llama-server", "samplers leaves no sampler that llama-server knows"),
    ],
)
def test_what_is_said_of_a_field(body, server, said):
    remarks = read(json.dumps(body), server).remarks
    assert any(said in note for note in remarks), remarks
    assert all(note.template in NOTES for note in remarks)
    assert "sk-abc" not in repr(remarks)


@pytest.mark.parametrize(
    ("body", "server", "refused"),
    [
        ({"temperature": 2.5}, "openai", "OpenAI refuses temperature = 2.5"),
        ({"top_k": 0}, "sglang", "SGLang refuses top_k = 0"),
        ({"parameters": {"top_p": 1.0}}, "tgi", "TGI, /generate refuses top_p = 1.0"),
        ({"repeat_last_n": -1}, "llama-server", "llama-server refuses repeat_last_n = -1"),
    ],
)
def test_a_refused_value_is_said_by_the_servers_own_name(body, server, refused):
    request = read(json.dumps(body), server)
    assert request.settings is None and request.refused.startswith(refused)


def test_silent_tgi_is_greedy_and_its_chat_route_takes_zero():
    assert read('{"inputs": "a"}', "tgi").settings.top_k == 1
    assert read('{"temperature": 0}', "tgi-v1").settings.top_k == 1


def test_llama_servers_samplers_set_the_order_and_leave_stages_out():
    settings = read('{"samplers": ["temperature", "top_p"], "temperature": 2, "top_p": 0.9}', "llama-server").settings
    assert settings.active == ("temperature", "top_p")
    assert read('{"samplers": "tp", "temperature": 2, "top_p": 0.9}', "llama-server").settings == settings
    none = read('{"samplers": [], "temperature": 2, "top_p": 0.9, "logit_bias": [[5, 1]]}', "llama-server").settings
    assert none.active == ("logit_bias",)


def test_a_prompt_of_one_token_is_no_batch_of_one():
    for prompt, ids, text in (([5], (5,), None), ([[5]], (5,), None), (["a"], (), "a"), ([], (), None)):
        request = read(json.dumps({"prompt": prompt}), "vllm")
        assert (request.prompt_ids, request.prompt) == (ids, text), prompt


ODD: list[object] = [
    None,
    True,
    5,
    -1,
    0.5,
    10**400,
    -(10**400),
    float("nan"),
    "a",
    "9" * 400,
    [],
    [5],
    [[5, 10**400]],
    {},
    {"5": {}},
]


def test_no_value_of_a_field_breaks_the_reading():
    for name, server in SERVERS.items():
        for value in ODD:
            fields = dict.fromkeys((*server.knobs, *server.reads, *server.not_computed, "stop", "samplers"), value)
            for body in (fields, {"options": fields}, {"parameters": fields}):
                request = read(json.dumps(body), name)
                assert (request.settings is None) == bool(request.refused), (name, value)


@pytest.mark.parametrize(
    ("line", "server", "text"),
    [
        ('curl --cacert ca.pem localhost:30000/v1/completions -d \'{"prompt": "a"}\'', "sglang", "a"),
        ('curl https://api.openai.com/v1 --new-option x -d \'{"prompt": "a"}\'', "openai", "a"),
        ('curl --new-option x https://api.openai.com/v1 -d \'{"prompt": "a"}\'', "openai", "a"),
        ('curl -sSd \'{"prompt": "a"}\' -XPOST localhost:8080/completion', "llama-server", "a"),
        (
            r"""curl -sHx:y localhost:8080/completion -d$'{"prompt": "it\'s\u0021 \\n\xc3\xa9"}'""",
            "llama-server",
            "it's! \né",
        ),
        ("""curl localhost:8080/completion -d "{\\"prompt\\": \\"$'a'\\"}" """, "llama-server", "$'a'"),
        ('curl http://localhost:99999/api/chat -d \'{"prompt": "a"}\'', "ollama", "a"),
        ('curl \'http://[x\' -d \'{"n_predict": 1, "prompt": "a"}\'', "llama-server", "a"),
    ],
)
def test_lines_of_curl_as_people_type_and_browsers_copy_them(line, server, text):
    request = read(line)
    assert (request.server.name, request.prompt) == (server, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Nothing was pasted"),
        ("{'a': 1}", "The body is not JSON"),
        ("[1]", "The body is a list"),
        ("curl http://x", "has no body"),
        ("curl http://x -d @body.json", "lies in a file"),
        ("curl http://x -d '{", "quote that does not close"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_request_is_said_in_a_sentence(text, said):
    with pytest.raises(RequestError, match=said):
        read(text)
