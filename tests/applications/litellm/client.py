"""Asks by OpenAI's own client: answers, streams, twenty at once, and a wrong key."""

import asyncio
import json
import sys

import openai

# As config.yaml has it.
KEY = "sk-0f94d09be3a83267368f2c71408d7e0342f6c7be219409d1"
url = f"http://127.0.0.1:{sys.argv[1]}/v1"
client = openai.OpenAI(base_url=url, api_key=KEY, max_retries=0)
asked = {"model": "shop", "messages": [{"role": "user", "content": "hello"}]}
answers = {}

answers["models"] = [each.id for each in client.models.list()]
whole = client.chat.completions.create(**asked)
answers["whole"] = [whole.choices[0].message.content, whole.choices[0].finish_reason, whole.model]
pieces = [
    each.choices[0].delta.content
    for each in client.chat.completions.create(**asked, stream=True)
    if each.choices
]
answers["stream"] = ["".join(each for each in pieces if each), len(pieces)]
raw = client.chat.completions.with_raw_response.create(**asked)
answers["headers"] = [raw.status_code, raw.headers["content-type"], "x-litellm-version" in raw.headers]
for name, wrong in (("key", {"api_key": "sk-wrong"}), ("path", {"base_url": f"{url}/none"})):
    try:
        openai.OpenAI(**({"base_url": url, "api_key": KEY, "max_retries": 0} | wrong)).models.list()
    except openai.APIStatusError as error:
        answers[name] = [type(error).__name__, error.status_code]
try:
    client.chat.completions.create(model="none", messages=asked["messages"])
except openai.APIStatusError as error:
    answers["no such model"] = error.status_code
gone = client.chat.completions.create(**asked, stream=True)
next(iter(gone))
gone.close()


async def many() -> list:
    async with openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0) as each:
        got = await asyncio.gather(*(each.chat.completions.create(**asked) for _ in range(20)))
    return sorted({one.choices[0].message.content for one in got}), len(got)


answers["twenty at once"] = asyncio.run(many())
print(json.dumps(answers))
