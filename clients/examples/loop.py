"""The loop of an agent with Sightline. Uses only the standard library.

    python3 loop.py sightline FOLDER MODEL_URL PROMPT...

Each PROMPT is one turn. MODEL_URL answers requests like the messages API of
Anthropic. Prints the answers and the names of the turns as one JSON object.
"""

import json, pathlib, subprocess, sys, time, urllib.error, urllib.request
from rpc import Client, RequestError

program, folder, url, *prompts = sys.argv[1:]
folder = pathlib.Path(folder).resolve()
client = Client(program, folder)
ask = client.ask
TASK, MODEL = "loop-1", "claude-sonnet-4"
TEXT = {"type": "string"}
TOOLS = [
    {"name": name, "description": about, "input_schema": {"type": "object", "properties": dict.fromkeys(fields, TEXT), "required": fields}}
    for name, about, fields in [
        ("read_file", "Reads a file.", ["path"]),
        ("write_file", "Writes a file.", ["path", "content"]),
        ("run_command", "Runs a shell command.", ["command"]),
    ]
]
previous = None  # usage and time of the last request to the model


def call_model(messages, tools=TOOLS):
    body = {"model": MODEL, "max_tokens": 4096, "tools": tools, "messages": messages}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def run_tool(name, given):
    """Returns what the model gets: no text of a denied file, and no effect of a denied command."""
    if name == "read_file":  # judges, and knows unsaved text of editors
        return ask("sightline/readFile", path=given["path"], taskId=TASK)["text"]
    if name == "write_file":
        path = ask("sightline/checkAccess", paths=[given["path"]])["paths"][0]
        if path["access"] != "allowed":
            return f"{given['path']} is {path['access']}"
        (folder / given["path"]).write_text(given["content"])
        ask("sightline/trackFile", taskId=TASK, path=given["path"], operation="cline_edited")
        return "written"
    command = ask("sightline/checkAccess", paths=[], command=given["command"])["command"]
    if not command["allowed"]:
        return "refused: " + "; ".join(denied["reason"] for denied in command["denied"])
    done = subprocess.run(given["command"], shell=True, cwd=folder, capture_output=True, text=True)
    return ask("sightline/redact", text=done.stdout + done.stderr)["text"]


def use_tool(call):
    try:
        content, failed = run_tool(call["name"], call["input"]), False
    except (RequestError, OSError, KeyError) as error:  # `accessDenied` is an answer too
        content, failed = str(error), True
    return {"type": "tool_result", "tool_use_id": call["id"], "content": content, "is_error": failed}


def compact():
    """Replaces the older part of the conversation by a summary that the model writes."""
    plan = ask("sightline/planCompaction", taskId=TASK, model=MODEL)
    answer = call_model([{"role": "user", "content": plan["prompt"]}], tools=[])
    summary = "".join(part.get("text", "") for part in answer["content"])
    ask("sightline/applyCompaction", taskId=TASK, summary=summary, retainFrom=plan["retainFrom"])


def request_answer():
    """Sends what fits of the conversation. The stored one stays whole."""
    global previous
    fitted = {"taskId": TASK, "model": MODEL, **({"previousRequest": previous} if previous else {})}
    messages = ask("sightline/truncateHistory", **fitted)["messages"]
    sent = int(time.time() * 1000)
    try:
        answer = call_model(messages)
    except urllib.error.HTTPError as error:
        failure = {"status": error.code, "message": error.read().decode()}
        if not ask("sightline/classifyError", error=failure)["contextWindowExceeded"]:
            raise
        messages = ask("sightline/truncateHistory", taskId=TASK, model=MODEL, keep="quarter")["messages"]
        answer = call_model(messages)
    usage = answer["usage"]
    previous = {"ts": sent, "tokensIn": usage["input_tokens"], "tokensOut": usage["output_tokens"]}
    return answer


def run_turn(number, prompt):
    # 1. Between two turns there is no open tool call: the place for a summary and a checkpoint. A
    #    checkpoint between a call and its result would restore a conversation that ends with the call.
    if number > 1 and ask("sightline/planCompaction", taskId=TASK, model=MODEL)["needed"]:
        compact()
    turn = {"agent": "loop", "session": TASK, "turn": str(number)}
    before = ask("sightline/createCheckpoint", taskId=TASK, turn=turn)
    # 2. The prompt, with the block: what the editor shows, and which files changed since the last turn.
    block = ask("sightline/environmentDetails", taskId=TASK, includeFiles=number == 1)["text"]
    content = [{"type": "text", "text": prompt}, {"type": "text", "text": block}]
    ask("sightline/appendMessages", taskId=TASK, messages=[{"role": "user", "content": content}])
    while True:
        # 3. Every message is stored before anything else happens with it.
        answer = request_answer()
        ask("sightline/appendMessages", taskId=TASK, messages=[{"role": "assistant", "content": answer["content"]}])
        calls = [part for part in answer["content"] if part["type"] == "tool_use"]
        if not calls:
            break
        results = [use_tool(call) for call in calls]
        ask("sightline/appendMessages", taskId=TASK, messages=[{"role": "user", "content": results}])
    # 4. The state after the turn, so that what it changed is known.
    ask("sightline/createCheckpoint", taskId=TASK, turn=turn, turnEnd=True)
    return {"turn": before["turn"]["name"], "answer": answer["content"][-1]["text"]}


turns = [run_turn(number, prompt) for number, prompt in enumerate(prompts, 1)]
client.close()
print(json.dumps(turns, indent=2))
