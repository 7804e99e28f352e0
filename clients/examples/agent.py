"""A minimal agent harness for Sightline. Uses only the standard library.

    python3 agent.py sightline FOLDER FILE

Requests the environment block, reads FILE under the access rules, creates a
checkpoint, edits the file, diffs and restores it. Prints one JSON object.
"""

import json, pathlib, sys
from rpc import Client

program, folder, name = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
client = Client(program, folder)
ask = client.ask

block = ask("sightline/environmentDetails", taskId="example", includeFiles=True)  # add it to the prompt
verdict = ask("sightline/checkAccess", paths=[name], command=f"cat {name}")  # before running a tool
text = ask("sightline/readFile", path=name, taskId="example")["text"]  # the read tool
checkpoint = ask("sightline/createCheckpoint", taskId="example", label="before the edit")
(folder / name).write_text(text + "edited by the agent\n")  # the write tool
ask("sightline/trackFile", taskId="example", path=name, operation="cline_edited")
changes = ask("sightline/diffCheckpoints", **{"from": checkpoint["id"]})
preview = ask("sightline/previewRestore", id=checkpoint["id"])
restored = ask("sightline/restoreCheckpoint", id=checkpoint["id"], token=preview["token"])
client.close()
answers = {"block": block["text"], "access": verdict, "changes": changes["files"], "restored": restored["outcomes"]}
print(json.dumps(answers, indent=2))
